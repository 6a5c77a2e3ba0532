// SPDX-License-Identifier: Apache-2.0
// Rows of FP32 whose values lie some places apart, with zeros between them; and such values side by side.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

//   out[r·out_stride + p] = in[r·in_stride + p / step] where step divides p and p / step < count, else 0
//
// for p < length and r < rows; (count - 1)·step < length. Nothing else is written.
struct SpacedOutRows {
  const float* in = nullptr;
  int64_t in_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t rows = 1;
  int64_t count = 0;
  int64_t step = 2;
  int64_t length = 0;
  // Rows of `out` that are whole vectors at their own boundaries may go past the caches: end_stream()
  // (tile_product.h) must follow before another thread may read them.
  bool stream = false;
};
void space_rows(const SpacedOutRows& rows);

// out[i] = in[2·i], i < count. Nothing behind the last of them is read.
void pick_every_other(const float* in, float* out, int64_t count);

}  // namespace retrograd::kernels::cpu
