// SPDX-License-Identifier: Apache-2.0
// The last step of grad_weight of depthwise convolutions: adds the sums of parts.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// What is innermost: taps or channels. A channel is a pair of channels, those of y outside, where a group has
// several of one side.
enum class PartOrder : unsigned char { kTapsOfChannel, kChannelsOfTap };

// A sum that is not finite, where a zero beyond the edge may have met an infinity, is taken from the formula.
void add_parts(const Conv& conv, int64_t parts, PartOrder order, const float* sums, Stream stream);

}  // namespace retrograd::kernels::cuda
