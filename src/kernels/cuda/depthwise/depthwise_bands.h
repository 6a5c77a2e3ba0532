// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 5x5 and 7x7 on tensor cores, on row-major planes of FP16 or BF16 whose rows are
// whole chunks of 16 bytes: stride 1, no dilation, padding of half a kernel.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Rows of at most 256 columns.
void depthwise_bands_grad_input(const Conv& conv, Stream stream);

// Rows of at most 128 columns.
// How many parts the images are cut into; the workspace holds a float for each part of each weight.
int64_t bands_images_in_part(const Conv& conv);
int64_t depthwise_bands_parts(const Conv& conv);
// Leaves sums of parts as [part][channel][tap].
void depthwise_bands_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
