// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of stride 1 with kernels of any shape up to 64 x 64, on row-major planes of FP32,
// FP16 or BF16.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// spans: lines in 16 bits on tensor cores, of whole chunks. tiles: everything else.
enum class TilesKernel : unsigned char { kSpans, kTiles };
const char* name_of(TilesKernel kernel);
// alignment: what both addresses are multiples of.
TilesKernel tiles_kernel(const Conv& conv, int alignment);

void depthwise_tiles_gather(const Conv& conv, bool forward, TilesKernel kernel, Stream stream);

// How many parts the images are cut into; the workspace holds a float for each part of each weight.
int64_t depthwise_tiles_parts(const Conv& conv, TilesKernel kernel);
void depthwise_tiles_grad_weight(const Conv& conv, TilesKernel kernel, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
