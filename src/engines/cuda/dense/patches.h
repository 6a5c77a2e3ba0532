// SPDX-License-Identifier: Apache-2.0
// forward and grad_weight as products of one tap, where x has few channels (im2col):
//   y[p, o] = Σ_{(i, t)} x'[p, (i, t)] · w[o, (i, t)]      x'[p, (i, t)] = x[i, position(p, t)]
//   w[o, (i, t)] = Σ_p x'[p, (i, t)] · y[p, o]
// x' and the weights are copied (kernels/cuda/layout/channel_rows.h): tiles are filled by channels and taps
// together, and nothing of a tap is filled up by itself.
#pragma once

#include "engines/cuda/dense/product_axes.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {

// Whether there is such a form whose copy has bounds. Of a pass whose places are fewer than 2^31.
bool has_patches(const ConvPass& pass, kernels::cuda::RowType type);
// Elements of a group's row of x', filled up.
int64_t patch_row(const ConvPass& pass, kernels::cuda::RowType type);
// Elements of x', and bytes that the copy reads and writes.
int64_t patch_elements(const ConvPass& pass, kernels::cuda::RowType type);
double patch_traffic(const ConvPass& pass, kernels::cuda::RowType type);
ProductAxes patch_axes(const ConvPass& pass);

}  // namespace retrograd::engines::cuda
