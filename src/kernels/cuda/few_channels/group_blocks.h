// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight of narrow groups on tensor cores: 1, 2, 4, 8 or 16
// channels a group, as many of x as of y, 3x3 without strides; FP16 or BF16,
// planes of even rows or channels last. Data is at a multiple of 16 bytes.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

bool has_group_grad_input(const Conv& conv, bool channels_last);
void group_grad_input(const Conv& conv, bool channels_last, Stream stream);

// Each of `group_weight_parts` blocks that share the places leaves
// `group_part_floats` sums of products in the workspace.
bool has_group_grad_weight(const Conv& conv, bool channels_last);
int64_t group_part_floats(const Conv& conv);
int64_t group_weight_parts(const Conv& conv, bool channels_last);
void group_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

bool has_group_blocks(const Conv& conv, bool channels_last);

}  // namespace retrograd::kernels::cuda
