// SPDX-License-Identifier: Apache-2.0
// Gradients of the taps of depthwise convolutions, planes as lanes (depthwise_lanes.h), or neighbouring
// channels where they lie:
//
//   sums[r][t][l] += Σ_h Σ_j y[h][j][l] · x[h·x_row + r·x_tap_row][j·step + start + t·dilation][l]
//
// h runs over rows of y, j over the positions of a row at which tap t reads inside x. A tile is up to 4 rows
// of taps × 7 taps with 14 accumulators in all. Where the stride is the dilation, or twice it, a position
// costs a load of y and one or two of x for each row of taps; else a load of x for each tap. Lanes are added
// up by the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

inline constexpr int64_t kDepthwiseTapRows = 4;
inline constexpr int64_t kDepthwiseTileTaps = 7;
inline constexpr int64_t kDepthwiseTapSums = 14;
// Rows of taps that fit beside each other for a kernel of this width.
inline constexpr int64_t depthwise_tap_rows(int64_t width) {
  const int64_t tiles = (width + kDepthwiseTileTaps - 1) / kDepthwiseTileTaps;
  const int64_t rows = kDepthwiseTapSums / ((width + tiles - 1) / tiles);
  return rows < kDepthwiseTapRows ? rows : kDepthwiseTapRows;
}

struct DepthwiseDots {
  // Of x and y: FP32, or BF16 or FP16, which are read where they lie.
  DType type = DType::kF32;
  const std::byte* x = nullptr;
  int64_t x_place = 0;    // elements from a place to the next
  int64_t x_row = 0;      // from a row of y to the next
  int64_t x_tap_row = 0;  // and from a row of taps to the next
  const std::byte* y = nullptr;
  int64_t y_place = 0;
  int64_t y_row = 0;
  int64_t rows = 0;
  int64_t tap_rows = 1;  // at most depthwise_tap_rows(taps)
  int64_t taps = 0;
  // Positions at which a tap is live, both falling from tap to tap.
  const int64_t* begin = nullptr;
  const int64_t* end = nullptr;
  int64_t first = 0;  // positions to add; y starts at the first
  int64_t count = 0;
  int64_t start = 0;  // in places of x: may be negative where no tap is live
  int64_t step = 1;
  int64_t dilation = 1;
  float* sums = nullptr;  // [tap row][tap][lane]
  // Blocks of lanes beside each other, where those are channels: some rows at a time are added for all of
  // them, so that what lies together in memory is read together. Block b is b·lanes elements further on in
  // x and y, the last one last_block, and b·block_sums in the sums.
  int64_t blocks = 1;
  int64_t last_block = 0;
  int64_t block_sums = 0;
};
void depthwise_dots(const DepthwiseDots& dots);

}  // namespace retrograd::kernels::cpu
