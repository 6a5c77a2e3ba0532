// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with any window and any strides in FP32, FP16 or BF16: one channel of one side a
// group and one to four of the other.
#pragma once

#include "kernels/cuda/depthwise_windows/windows_plan.h"

namespace retrograd::kernels::cuda {

// The result is y where the plan is one of forward, else x.
void windows_gather(const Conv& conv, bool forward, const GatherWindows& plan, Stream stream);
// The workspace holds plan.parts · plan.weights floats.
void windows_grad_weight(const Conv& conv, const WeightWindows& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
