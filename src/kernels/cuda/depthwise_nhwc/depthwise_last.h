// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, one channel a group, on channels-last tensors of FP32, FP16 or BF16: kernels of
// 3x3, 5x5 and 7x7, stride 1 or 2, no dilation, padding of half a kernel, an even number of channels. Both x
// and y lie at multiples of two elements.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void depthwise_last_grad_input(const Conv& conv, Stream stream);

// How many parts the places are cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_last_parts(const Conv& conv);
void depthwise_last_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
