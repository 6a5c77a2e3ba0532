// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on channels-last tensors of FP32, FP16 or BF16, whole 16-byte vectors of channels
// at multiples of 16 bytes; every window is multiplied with `scale`.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Windows side by side, without padding, in three axes.
void pool_last_side_by_side(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
