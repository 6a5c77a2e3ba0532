// SPDX-License-Identifier: Apache-2.0
// Average pooling of dense tensors from its formula, forward and backward: a thread a result.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void pool_any(const Pool& pool, bool channels_last, bool forward, Stream stream);

}  // namespace retrograd::kernels::cuda
