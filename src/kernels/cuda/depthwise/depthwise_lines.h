// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions along one axis, one channel a group, on row-major tensors of FP32, FP16 or BF16:
// stride 1, no dilation, at most 64 taps.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// y from x, or with forward = false x from y.
void depthwise_lines_gather(const Conv& conv, bool forward, Stream stream);

// How many parts a channel is cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_lines_parts(const Conv& conv);
// Leaves sums of parts as [part][channel][tap].
void depthwise_lines_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
