// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, one channel a group, on row-major planes of FP32, FP16 or BF16: kernels of 3x3, 5x5
// and 7x7, stride 1 or 2, no dilation, any padding.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// small: planes of 14x14 or of up to 64 places in 16 bits on tensor cores. bands: 5x5 and 7x7 in 16 bits on
// tensor cores. All of them: stride 1, padding of half a kernel. rows: everything else.
enum class DepthwiseKernel : unsigned char { kSmall, kBands, kRows };
const char* name_of(DepthwiseKernel kernel);
// alignment: what both addresses are multiples of.
bool has_depthwise_kernel(DepthwiseKernel kernel, const Conv& conv, bool grad_input, int alignment);
// The first of them that there is.
DepthwiseKernel depthwise_kernel(const Conv& conv, bool grad_input, int alignment);

void depthwise_grad_input(const Conv& conv, DepthwiseKernel kernel, Stream stream);

// How many parts the images are cut into, at most; the workspace holds a float for each part of each weight.
int64_t depthwise_parts(const Conv& conv, DepthwiseKernel kernel);
void depthwise_grad_weight(const Conv& conv, DepthwiseKernel kernel, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
