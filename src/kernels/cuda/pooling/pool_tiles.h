// SPDX-License-Identifier: Apache-2.0
// Average pooling backward with windows of 2x2 and stride 2, or 3x3 and stride 1 or 2, in the last two axes,
// and of up to kMostTileDepths places in the first; any padding and divisors.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Channels last: whole 16-byte vectors of channels at multiples of 16 bytes.
void pool_tiles(const Pool& pool, bool channels_last, Stream stream);

}  // namespace retrograd::kernels::cuda
