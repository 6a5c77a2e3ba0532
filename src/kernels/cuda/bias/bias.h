// SPDX-License-Identifier: Apache-2.0
// grad_bias of FP32, FP16 or BF16, of planes anywhere or of a dense channels-last grad_output.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// How each channel's sum is cut: a function of the problem alone. The workspace holds a float for each part
// of each row of each channel.
struct BiasCut {
  int64_t rows;   // channels-last rows that are read as one, so that together they are whole vectors
  int64_t parts;  // of the places, or of such rows
  int64_t sums() const { return rows * parts; }
};
BiasCut bias_cut(const Bias& bias);
// The places of a plane side by side; strides from plane to plane are not negative.
void bias_planes(const Bias& bias, float* workspace, Stream stream);
// Channels innermost.
void bias_channels_last(const Bias& bias, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
