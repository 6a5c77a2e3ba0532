// SPDX-License-Identifier: Apache-2.0
// Average pooling on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, input and result of
// one type.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// (N, C, D, H, W) row-major.
void pool_planes(const Pool& pool, Stream stream);
// Channels innermost.
void pool_channels_last(const Pool& pool, Stream stream);

}  // namespace retrograd::kernels::cuda
