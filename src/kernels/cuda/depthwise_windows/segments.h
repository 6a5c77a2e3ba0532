// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions along one axis, one channel a group, on row-major tensors of FP32, FP16 or BF16:
// lines of any length and alignment, strides, dilation.
#pragma once

#include "kernels/cuda/depthwise_windows/segments_plan.h"

namespace retrograd::kernels::cuda {

// y from x, or with forward = false x from y.
void segments_gather(const Conv& conv, bool forward, const GatherSegments& plan, Stream stream);
// The workspace holds plan.parts · plan.weights floats.
void segments_grad_weight(const Conv& conv, const WeightSegments& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
