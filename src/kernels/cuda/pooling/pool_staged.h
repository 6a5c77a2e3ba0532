// SPDX-License-Identifier: Apache-2.0
// Average pooling backward with windows of 3x3, padding 1 and stride 1, on small row-major planes of any
// width.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Whether planes are small enough, and a block's planes begin and end at multiples of 16 bytes.
bool pool_staged_fits(const Pool& pool);
void pool_staged(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
