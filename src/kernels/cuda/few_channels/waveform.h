// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight of a waveform's first layer: one x channel, one axis, ten taps, stride 5; planes
// of FP32, FP16 or BF16.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

bool has_waveform(const Conv& conv);
void waveform_grad_input(const Conv& conv, Stream stream);

// Each part leaves its sums of all weights in the workspace, [part][weight].
int64_t waveform_parts(const Conv& conv);
void waveform_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
