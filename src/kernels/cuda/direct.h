// SPDX-License-Identifier: Apache-2.0
// Every pass with any strides, sizes and types, straight from its formula: what runs when nothing else does.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void direct_forward(const Conv& conv, Stream stream);
void direct_grad_input(const Conv& conv, Stream stream);
void direct_grad_weight(const Conv& conv, Stream stream);
void direct_bias(const Bias& bias, Stream stream);
void direct_pool(const Pool& pool, Stream stream);
void direct_pool_forward(const Pool& pool, Stream stream);

}  // namespace retrograd::kernels::cuda
