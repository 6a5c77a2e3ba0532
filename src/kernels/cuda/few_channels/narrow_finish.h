// SPDX-License-Identifier: Apache-2.0
// The end of a grad_weight whose places were shared out in parts.
#pragma once

#include "kernels/cuda/part_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// sums: [part][y channel][x channel of the group][kernel row][kernel column], added in order. A sum that is
// NaN may owe this to a zero beyond the edge and is taken from the formula. One or two axes.
void add_parts(const Conv& conv, int parts, const PartRows& rows, const float* sums, Stream stream);

}  // namespace retrograd::kernels::cuda
