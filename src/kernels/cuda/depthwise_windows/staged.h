// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions in NCHW through shared memory: one channel of one side a group and one to four of
// the other, any window, FP32, FP16 or BF16.
#pragma once

#include "kernels/cuda/depthwise_windows/staged_plan.h"

namespace retrograd::kernels::cuda {

// The result is y where the plan is one of forward, else x. Both are dense planes.
void staged_gather(const Conv& conv, bool forward, const StagedPlan& plan, Stream stream);
// x and y are dense planes. The workspace holds plan.parts · plan.work.weights floats.
void staged_grad_weight(const Conv& conv, const StagedWeightPlan& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
