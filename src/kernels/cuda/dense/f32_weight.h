// SPDX-License-Identifier: Apache-2.0
// weight_product of FP32 rows on Hopper's warpgroup products: parts, which are to be added.
#pragma once

#include "kernels/cuda/dense/weight_product.h"
#include "kernels/cuda/dense/weight_tiles.cuh"

namespace retrograd::kernels::cuda {

// How many parts the places are cut into; 0: weight_product's tiles are to do it.
int64_t f32_weight_parts(const Conv& conv, ProductMath math);
// Writes as many parts as p.part cuts the places into. False: nothing was launched. Needs
// a Hopper GPU, and f32_weight_parts() > 0.
bool f32_weight(const weight::Product& p, const WeightProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
