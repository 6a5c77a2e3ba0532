// SPDX-License-Identifier: Apache-2.0
// The last step of grad_weight of depthwise convolutions: adds the sums of parts.
#pragma once

#include <cstdint>

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// What is innermost: taps or channels. A channel is a pair of channels, those of y outside, where a group has
// several of one side.
enum class PartOrder : unsigned char { kTapsOfChannel, kChannelsOfTap };

// A sum that is NaN, where a zero beyond the edge may have met an infinity, is taken from the formula; with
// `rows`, only its parts that are NaN.
void add_parts(const Conv& conv, int64_t parts, PartOrder order, const PartRows& rows, const float* sums,
               Stream stream);

}  // namespace retrograd::kernels::cuda
