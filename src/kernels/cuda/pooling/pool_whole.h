// SPDX-License-Identifier: Apache-2.0
// Average pooling forward with windows of many places, which several threads share.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Row-major planes, each of them one window (ForwardKernel::kWhole).
void pool_whole(const Pool& pool, Stream stream);
// Channels last; vector: channels of a thread, 16 bytes of them or one.
void pool_shared(const Pool& pool, int vector, Stream stream);

}  // namespace retrograd::kernels::cuda
