// SPDX-License-Identifier: Apache-2.0
// gather_product of FP32 rows on Hopper's warpgroup products, FP32 out.
#pragma once

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda {

// False: nothing was launched, and gather_product is to do it. Needs a Hopper GPU.
bool f32_gather(const gather::Product& p, const GatherProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
