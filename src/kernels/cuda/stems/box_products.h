// SPDX-License-Identifier: Apache-2.0
// forward with few x channels a group on tensor cores, windows gathered out of shared memory.
#pragma once

#include "kernels/cuda/stems/box_plan.h"

namespace retrograd::kernels::cuda {

// FP32, FP16 or BF16 throughout, any strides.
void box_products(const Conv& conv, const BoxPlan& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
