// SPDX-License-Identifier: Apache-2.0
// Single rows of depthwise convolutions with vectors along them:
//
//   depthwise_line        out[k]     = start + Σ_t weights[t] · source[k + offsets[t]]
//   depthwise_line_dots   sums[t][l] += Σ_i y[i·lanes + l] · x[i·lanes + l + offsets[t]]
//
// Rows of sources come with zeros around them, so nothing is masked, and what a place outside is multiplied
// with must be finite. Every product needs a load of its own, most of them across the end of a cache line:
// vectors are at most 8 lanes, of which two are loaded in the time of one of 16, and cross half as often.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {

// Lanes of the sums, of any machine at most.
inline constexpr int64_t kMostLineLanes = 8;
constexpr int64_t line_lanes_of(const VectorShape& shape) { return std::min(shape.floats, kMostLineLanes); }

struct DepthwiseLine {
  const float* source = nullptr;  // up to kMostLineLanes - 1 floats behind the last are read, too
  int64_t count = 0;
  const float* weights = nullptr;
  const int64_t* offsets = nullptr;  // not below 0
  int64_t taps = 0;
  float start = 0;
  float* out = nullptr;
};
void depthwise_line(const DepthwiseLine& line);

struct DepthwiseLineDots {
  const float* x = nullptr;  // up to kMostLineLanes - 1 floats behind the last are read, too: finite ones
  const float* y = nullptr;
  int64_t count = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;
  float* sums = nullptr;  // aligned to a vector
};
void depthwise_line_dots(const DepthwiseLineDots& line);
// out[t] = Σ_l sums[t][l]
void add_line_lanes(const float* sums, int64_t taps, float* out);

}  // namespace retrograd::kernels::cpu
