// SPDX-License-Identifier: Apache-2.0
// grad_weight of groups of 4, 8, 12 or 16 x channels and kernels of three columns, on planes or channels-last
// tensors of FP32: plain multiply-adds on tiles in shared memory. One or two axes, stride 1 or 2, dilation 1.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Whether there is a kernel for this window and these channels.
bool has_narrow_grad_weight(const Conv& conv);

// Blocks that share the places; each leaves its sums of all weights in the workspace.
int64_t narrow_weight_parts(const Conv& conv, bool channels_last);
void narrow_tiles_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
