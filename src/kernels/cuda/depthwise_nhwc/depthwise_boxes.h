// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on channels-last tensors of FP16 or BF16 at multiples of 16 bytes, a multiple of 8
// channels: kernels of 5x5 and 7x7, stride 1, no dilation, padding of half a kernel.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void depthwise_boxes_grad_input(const Conv& conv, Stream stream);

// How many parts the places are cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_boxes_parts(const Conv& conv);
// Leaves sums of parts as [part][tap][channel].
void depthwise_boxes_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
