// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on row-major planes of 14x14, or of up to 64 places, in FP16 or BF16 on tensor
// cores: kernels of 3x3, 5x5 and 7x7, stride 1, no dilation, padding of half a kernel.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void depthwise_small_grad_input(const Conv& conv, Stream stream);

// How many parts the images are cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_small_parts(const Conv& conv);
void depthwise_small_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
