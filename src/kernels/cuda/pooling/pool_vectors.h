// SPDX-License-Identifier: Apache-2.0
// Average pooling on channels-last tensors, forward and backward, 16 bytes of channels a thread.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void pool_vectors(const Pool& pool, bool forward, Stream stream);

}  // namespace retrograd::kernels::cuda
