// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions along one axis on tensor cores, on row-major tensors of FP16 or BF16 whose lines are
// whole chunks of 16 bytes: one channel a group, stride 1, no dilation, at most 64 taps.
#pragma once

#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// y from x, or with forward = false x from y.
void depthwise_spans_gather(const Conv& conv, bool forward, Stream stream);

// How many parts a channel is cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_spans_parts(const Conv& conv);
// Leaves sums of parts as [part][channel][tap].
void depthwise_spans_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
