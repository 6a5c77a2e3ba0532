// SPDX-License-Identifier: Apache-2.0
// Gradients of the taps of depthwise convolutions with vectors along W (depthwise_wide.h):
//
//   sums[d][t][h][l] += Σ_j Σ_k y[j][k·lanes + l] · x[d][j + first_row + h][k·lanes + l + offsets[t]]
//
// A tile is up to 8 rows of y × one vector, which stay in registers while x passes. Where vectors have two
// rows of 8 those are of neighbouring planes, and so are the halves of the sums: [pair][d][t][h][plane][l].
// Rows outside x are left out; places outside count as zeros, which make NaN of what is not finite. Where a
// sum is not, the caller asks again with `masked`, which leaves them out and takes a little longer.
#pragma once

#include <cstdint>

#include "kernels/cpu/depthwise/depthwise_wide.h"

namespace retrograd::kernels::cpu {

struct DepthwiseWideDots {
  int64_t lanes = 0;  // what wide_lanes() said
  int64_t planes = 0;
  const float* x = nullptr;  // of the first live depth
  int64_t x_plane = 0;       // floats from one to the next, as all that follow
  const float* y = nullptr;
  int64_t y_plane = 0;
  float* sums = nullptr;
  int64_t sum_plane = 0;  // from a plane, or pair of planes, to the next
  bool pairs = false;     // where wide_planes() says 2
  int64_t depths = 1;
  int64_t x_depth = 0;
  int64_t sum_depth = 0;
  int64_t rows = 0;       // of y
  int64_t tap_rows = 1;   // at most kMostWideTapRows
  int64_t first_row = 0;  // may be negative
  int64_t x_rows = 0;
  int64_t x_row = 0;
  int64_t y_row = 0;
  int64_t width = 0;  // of y
  int64_t x_width = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;     // at most kMostWideTaps
  bool masked = false;  // zeros are not multiplied

  int64_t all_taps() const { return taps; }
  int64_t columns_left(int64_t column, int64_t tap) const {
    return (x_width < width + offsets[tap] ? x_width - offsets[tap] : width) - column;
  }
};
void depthwise_wide_dots(const DepthwiseWideDots& planes);

// out[plane][i] = Σ_l sums of the plane's ith tap
void add_wide_lanes(const float* sums, int64_t lanes, bool pairs, int64_t planes, int64_t taps, float* out);

}  // namespace retrograd::kernels::cpu
