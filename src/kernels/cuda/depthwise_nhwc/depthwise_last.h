// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, one channel a group, on dense channels-last tensors of FP32, FP16 or BF16 at any
// address: windows of up to 7x7 taps in two axes, any padding, stride 1 with any dilation or stride 2
// without.
#pragma once

#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

namespace retrograd::kernels::cuda {

// forward, or grad_input.
void depthwise_last_gather(const Conv& conv, bool forward, const LastPlan& plan, Stream stream);

// The workspace holds a float for each part of each weight.
void depthwise_last_grad_weight(const Conv& conv, const LastPlan& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
