// SPDX-License-Identifier: Apache-2.0
// Which axis the rows of a pass lie along, for engines that have positions as lanes.
#pragma once

#include <cstdint>

#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Rows of fewer places do not fill a vector.
inline constexpr int64_t kShortestRow = 4;

// Positions of a row of a forward or grad_input pass, of one phase.
int64_t row_positions_of(const problem::ConvPass& pass);

// The same pass with its longest axis as W, where rows along W are too short. A convolution does not say
// which axis is which: sizes, taps and strides change places. Volumes with 2 or 3 frames on the last axis
// need this, and lines that are stored as columns.
problem::ConvPass with_long_rows(problem::ConvPass pass);

}  // namespace retrograd::engines::cpu
