// SPDX-License-Identifier: Apache-2.0
// Average pooling backward with windows of 3x3, padding 1 and stride 1, on small row-major planes of any
// width.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// staged_planes() > 0 (pool_plan.h), addresses at multiples of 16 bytes.
void pool_staged(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
