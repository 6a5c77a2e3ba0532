// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with small square kernels on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// grad_input or grad_weight, one channel a group, FP32, FP16 or BF16 throughout, no rounding of operands,
// kernels of 3x3, 5x5 or 7x7 in two axes, stride 1 or 2, dilation 1, padding of half a kernel, 31-bit sizes.
Support is_small_square(const problem::ConvPass* pass);

}  // namespace retrograd::engines::cuda
