// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on channels-last tensors, 16 bytes of channels a thread.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void pool_vectors(const Pool& pool, Stream stream);

}  // namespace retrograd::kernels::cuda
