// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight with few channels a group, planes or channels last, one or two axes: in FP16 or
// BF16 on tensor cores, in FP32 without.
#pragma once

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

// Groups of 1, 2, 4, 8 or 16 channels, as many of x as of y, 3x3 without strides; planes of even rows or
// channels last. Data is at a multiple of 16 bytes.
bool has_group_grad_input(const Conv& conv, bool channels_last);
void group_grad_input(const Conv& conv, bool channels_last, Stream stream);
// Each of `group_weight_parts` blocks that share the places leaves `group_part_floats` sums of products in
// the workspace.
bool has_group_grad_weight(const Conv& conv, bool channels_last);
int64_t group_part_floats(const Conv& conv);
int64_t group_weight_parts(const Conv& conv, bool channels_last);
void group_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

bool has_group_blocks(const Conv& conv, bool channels_last);

// ---- with few x channels a group (stems, 1-D front ends, narrow groups), of FP32: plain multiply-adds on
// tiles in shared memory, dilation 1

// Whether there is a kernel for this window and these channels.
bool has_narrow_grad_input(const Conv& conv);
bool has_narrow_grad_weight(const Conv& conv);

void narrow_tiles_grad_input(const Conv& conv, bool channels_last, Stream stream);

// Blocks that share the places; each leaves its sums of all weights in the workspace.
int64_t narrow_weight_parts(const Conv& conv, bool channels_last);
void narrow_tiles_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
