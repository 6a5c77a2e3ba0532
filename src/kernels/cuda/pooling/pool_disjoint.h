// SPDX-License-Identifier: Apache-2.0
// Average pooling backward with windows side by side, no padding and one divisor, on row-major planes.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void pool_disjoint(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
