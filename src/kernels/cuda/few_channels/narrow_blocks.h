// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight with few channels a group on tensor cores: FP16 or BF16, planes or channels
// last, one or two axes.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kBlockChannels = 16;

// grad_input: at most 16 results of a place (x channels by residues of the strides), or narrow groups, 16
// channels of whole groups at a time.
bool has_block_grad_input(const Conv& conv);
double block_gather_microseconds(const Conv& conv, bool channels_last);  // about, on an H200

void block_grad_input(const Conv& conv, bool channels_last, Stream stream);

// grad_weight: at most four x channels a group, an even stride along rows, and windows of stems.
bool has_stem_grad_weight(const Conv& conv);
// Blocks that share the places; each leaves its sums of all weights in the workspace.
int64_t stem_weight_parts(const Conv& conv);
void stem_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
