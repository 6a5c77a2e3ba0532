// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, one channel a group, on row-major planes of FP32, FP16 or BF16, no dilation.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Kernels of 3x3, 5x5 and 7x7, stride 1 or 2, any padding.
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

// Kernels of any shape up to 64 x 64, stride 1.
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
