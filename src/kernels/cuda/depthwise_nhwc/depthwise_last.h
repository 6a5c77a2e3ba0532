// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, one channel a group, on channels-last tensors of FP32, FP16 or BF16: kernels of
// 3x3, 5x5 and 7x7, stride 1 or 2, no dilation, padding of half a kernel, an even number of channels. Both x
// and y lie at multiples of two elements.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// boxes: 5x5 and 7x7 in 16 bits, boxes in shared memory. pairs: two or four channels a thread. direct:
// neither, which is not for the launchers here.
enum class LastKernel : unsigned char { kBoxes, kPairs, kDirect };
const char* name_of(LastKernel kernel);
// alignment: what both addresses are multiples of.
LastKernel last_kernel(const Conv& conv, int alignment);

void depthwise_last_grad_input(const Conv& conv, LastKernel kernel, Stream stream);

// How many parts the places are cut into, at most; the workspace holds a float for each part of each weight.
int64_t depthwise_last_parts(const Conv& conv, LastKernel kernel);
void depthwise_last_grad_weight(const Conv& conv, LastKernel kernel, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
