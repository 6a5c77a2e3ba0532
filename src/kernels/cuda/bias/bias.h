// SPDX-License-Identifier: Apache-2.0
// grad_bias of a dense grad_output of FP32, FP16 or BF16.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// How many parts each channel's sum is cut into: a function of the problem alone. The workspace holds a float
// for each part of each channel.
int64_t bias_parts(const Bias& bias);
// (N, C, D, H, W) row-major.
void bias_planes(const Bias& bias, float* workspace, Stream stream);
// Channels innermost.
void bias_channels_last(const Bias& bias, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
