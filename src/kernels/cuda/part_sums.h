// SPDX-License-Identifier: Apache-2.0
// The last step of a grad_weight of few channels a group whose places were cut into parts (split K): adds the
// parts of each weight in order. dense/weight_parts.h does the same for rows of many channels.
#pragma once

#include <cstdint>

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// How the sums of a part lie. kTapsOfChannel: [y channel][x channel of the group][tap]. kChannelsOfTap:
// [tap][y channel][x channel of the group]. kSixteens, of 3x3 kernels and groups of up to 16 channels: [16 y
// channels][tap][y channel][x channel], where pairs of different groups are left out.
enum class PartOrder : unsigned char { kTapsOfChannel, kChannelsOfTap, kSixteens };

// A sum that is NaN, where a zero beyond the edge may have met an infinity, is taken from the formula; with
// `rows`, only its parts that are NaN.
void add_parts(const Conv& conv, int64_t parts, PartOrder order, const PartRows& rows, const float* sums,
               Stream stream);

}  // namespace retrograd::kernels::cuda
