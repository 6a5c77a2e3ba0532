// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on row-major planes, 3x3 windows with padding 1 and stride 1 or 2 in the last two
// axes.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// scale: of every window.
void pool_sliding(const Pool& pool, float scale, Stream stream);

}  // namespace retrograd::kernels::cuda
