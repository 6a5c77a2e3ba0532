// SPDX-License-Identifier: Apache-2.0
// weight_product of FP32 rows on Hopper's warpgroup products: parts, which are to be added.
#pragma once

#include "kernels/cuda/dense_weight/weight_product.h"
#include "kernels/cuda/dense_weight/weight_tiles.cuh"

namespace retrograd::kernels::cuda {

// Writes as many parts as p.part cuts the places into. False: nothing was launched. Needs
// a Hopper GPU, and f32_weight_parts() > 0 (weight_product_plan.h).
bool f32_weight(const weight::Product& p, const WeightProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
