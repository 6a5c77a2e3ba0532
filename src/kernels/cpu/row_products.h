// SPDX-License-Identifier: Apache-2.0
// Kernels with positions along W as the vector side, for convolutions whose groups have too few channels to
// fill a vector.
//
//   row_dots   sums[t]   += Σ_x y[x] · source[offsets[t] + x]               gradients of taps
//
// One unaligned load for each fused multiply-add.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

struct RowDots {
  const float* source = nullptr;
  const int64_t* offsets = nullptr;
  int64_t terms = 0;
  const float* y = nullptr;  // zeros up to dots_overrun() behind `count`
  int64_t count = 0;
  float* sums = nullptr;  // one a term, added to
};
void row_dots(const RowDots& rows);

// Rows are worked on in multiples of this many floats: buffers end this much later.
int64_t dots_overrun();

}  // namespace retrograd::kernels::cpu
