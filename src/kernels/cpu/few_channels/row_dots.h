// SPDX-License-Identifier: Apache-2.0
// Dot products with positions as the vector side, for gradients of weights between few channels.
//
//   sums[o][t][lane] (+)= Σ_{r < rows} Σ_x y[o·y_stride + r·y_row + x]
//                                          · source[offsets[t] + r·source_row + x]
//
// with x over [0, count) and lane = x modulo the vector: lanes are added together once, at the end of a split
// (lane_totals). 24 sums of channels × terms stay in registers (12 where there are 16 registers); 8 channels
// and 3 terms, or 4 and 6, read 11 or 10 vectors for 24 multiply-adds.
#pragma once

#include <cstdint>

namespace retrograd::kernels::cpu {

struct RowDots {
  const float* y = nullptr;
  int64_t y_stride = 0;  // from channel to channel
  int64_t y_row = 0;
  int channels = 1;  // 1 to dot_channels()
  const float* source = nullptr;
  int64_t source_row = 0;
  const int64_t* offsets = nullptr;
  int64_t terms = 0;
  int64_t rows = 1;
  int64_t count = 0;
  float* sums = nullptr;  // 64-byte aligned; dot_lanes() floats a term, `terms` terms a channel
  bool accumulate = false;
  // What lies so many floats behind y, as much of it, is fetched meanwhile: what the next call reads; 0:
  // none.
  int64_t next = 0;
};
// Of the source, up to dot_lanes() − 1 floats behind a row are read and must be finite; of y, none.
void row_dots(const RowDots& dots);

// totals[i] = Σ_lane sums[i][lane]
void lane_totals(const float* sums, int64_t count, float* totals);

}  // namespace retrograd::kernels::cpu
