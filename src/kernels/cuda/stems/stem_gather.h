// SPDX-License-Identifier: Apache-2.0
// grad_input with few x channels a group (stems, 1-D front ends, first layers of volumes) for every window
// without dilation, in FP32 arithmetic: FP32, FP16 and BF16, any strides of all operands.
#pragma once

#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::kernels::cuda {

void stem_gather(const Conv& conv, const StemPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
