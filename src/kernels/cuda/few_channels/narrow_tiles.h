// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight with few x channels a group (stems, 1-D front ends, narrow groups), on planes or
// channels-last tensors of FP32: plain multiply-adds on tiles in shared memory. One or two
// axes, dilation 1.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Whether there is a kernel for this window and these channels.
bool has_narrow_grad_input(const Conv& conv);
bool has_narrow_grad_weight(const Conv& conv);

void narrow_tiles_grad_input(const Conv& conv, bool channels_last, Stream stream);

// Blocks that share the places; each leaves its sums of all weights in the workspace.
int64_t narrow_weight_parts(const Conv& conv, bool channels_last);
void narrow_tiles_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
