// SPDX-License-Identifier: Apache-2.0
// gather_product on Hopper's warpgroup products: FP16 and BF16 in, the same type out.
#pragma once

#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::kernels::cuda {

// Whether the copy engine can walk over the places.
bool wgmma_gather_takes(const GatherProduct& product);

// About how long it takes on an H200, the launch aside. Looks at sizes and strides only.
double wgmma_gather_microseconds(const GatherProduct& product);

// The tiles that it is cut into, for people.
const char* wgmma_gather_tiles(const GatherProduct& product);

// False: nothing was launched. Needs a Hopper GPU, one group, multiples of eight channels (of patches: of y
// channels), addresses that are multiples of 16, weights as [y channels][taps][x channels], and a dense
// result, its channels innermost or outside its places.
bool wgmma_gather(const GatherProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
