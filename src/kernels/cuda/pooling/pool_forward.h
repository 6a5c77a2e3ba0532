// SPDX-License-Identifier: Apache-2.0
// Average pooling forward on dense tensors of FP32, FP16 or BF16 with fewer than 2^31 elements, x and y of
// one type and one layout: row-major, or channels innermost.
#pragma once

#include "kernels/cuda/pooling/pool_forward_plan.h"

namespace retrograd::kernels::cuda {

// choice: forward_choice's.
void pool_forward(const Pool& pool, bool channels_last, const ForwardChoice& choice, Stream stream);

}  // namespace retrograd::kernels::cuda
