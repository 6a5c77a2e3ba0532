// SPDX-License-Identifier: Apache-2.0
// Average pooling forward with windows of many pixels, which several threads share.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// sums: forward_sums of them.
// Row-major planes, each of them one window (ForwardKernel::kWhole).
void pool_whole(const Pool& pool, float* sums, Stream stream);
// Channels last; vector: channels of a thread, 16 bytes of them or one.
void pool_shared(const Pool& pool, int vector, float* sums, Stream stream);

}  // namespace retrograd::kernels::cuda
