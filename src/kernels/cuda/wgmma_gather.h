// SPDX-License-Identifier: Apache-2.0
// gather_product on Hopper's warpgroup products: FP16 and BF16 in, the same type out.
#pragma once

#include "kernels/cuda/gather_product.h"

namespace retrograd::kernels::cuda {

// Whether the copy engine can walk over the places, and the result is written in vectors. Channels are
// multiples of eight, the result lies dense, its channels innermost or outside its places.
bool wgmma_gather_takes(const GatherProduct& product);

// False: nothing was launched, and gather_product is to do it. Needs has_hopper_kernels(), addresses that are
// multiples of 16, and weight rows in a dense [taps][rows][channels].
bool wgmma_gather(const GatherProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
