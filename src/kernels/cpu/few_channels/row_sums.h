// SPDX-License-Identifier: Apache-2.0
// Sums with positions as the vector side, for results of few channels.
//
//   out[m][x] (+)= Σ_{o < outer} Σ_{j < inner} source[o·outer_stride + offsets[j] + x]
//                                              · weights[(o·inner + j)·weight_step + m]
//
// The sums of `results` rows × some vectors stay in registers: 24 of them where there are 32 registers, 12
// where there are 16. A vector read from any place costs two cycles on AVX-512 (it crosses a cache line) and
// serves `results` multiply-adds; with 3 results and more the multiply-adds are what counts.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

struct RowSums {
  const float* source = nullptr;
  const int64_t* offsets = nullptr;
  int64_t inner = 0;
  int64_t outer = 1;
  int64_t outer_stride = 0;
  const float* weights = nullptr;
  int64_t weight_step = 0;  // from those of one term to those of the next
  int results = 1;          // 1 to row_results()
  float* out = nullptr;     // row m at out + m·out_stride
  int64_t out_stride = 0;
  int64_t count = 0;        // of x; up to row_overrun() − 1 floats behind each row are written and read too
  bool accumulate = false;  // sums begin with what out holds
  const float* start = nullptr;  // otherwise those of row m with start[m·start_step]; null: with zero
  int64_t start_step = 0;
  bool fetch_next = false;  // source rows are fetched into the cache a call's worth of positions ahead
};
void row_sums(const RowSums& rows);

}  // namespace retrograd::kernels::cpu
