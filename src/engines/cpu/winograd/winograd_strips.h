// SPDX-License-Identifier: Apache-2.0
// Strips with channels innermost: [row][column][lane], one vector of channels, zeros where the tensor ends.
#pragma once

#include <cstdint>

#include "problem/pass.h"

namespace retrograd::engines::cpu {

struct LaneStrip {
  int64_t lanes = 0;     // floats in a place
  int64_t channels = 0;  // that the tensor has for them, at most `lanes`
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
  int64_t height = 0, width = 0;  // of the tensor's planes
};

// `plane` is the address of row 0, column 0, of the first channel; strides are those of an FP32 tensor.
void load_lanes(const LaneStrip& strip, const float* plane, const problem::Strides5& strides, float* out);
// All of the strip lies inside the tensor.
void store_lanes(const LaneStrip& strip, const float* in, const problem::Strides5& strides, float* plane);

}  // namespace retrograd::engines::cpu
