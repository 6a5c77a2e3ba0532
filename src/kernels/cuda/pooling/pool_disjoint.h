// SPDX-License-Identifier: Apache-2.0
// Average pooling backward with windows side by side, no padding and one divisor, on row-major planes:
// rows of whole vectors of 16 bytes at multiples of that, or planes and volumes that are one window each.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

void pool_disjoint(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
