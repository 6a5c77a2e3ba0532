// SPDX-License-Identifier: Apache-2.0
// grad_weight as a matrix product over rows of channels: y channels by x channels for each tap, summed over
// pixels.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct WeightProduct {
  Conv conv;        // as it is multiplied: of patches, one tap (conv_of_patches)
  Conv asked;       // as it was asked for: w is written
  bool patches;     // x_rows are patches of `asked`
  bool padded;      // whether a tap may lie beyond the edge: results that are not finite are taken from the
                    // formula
  bool warpgroups;  // the GPU has Hopper's products
  ProductMath math;
  const void* x_rows;
  const void* y_rows;
  float* workspace;
};

// How many floats of workspace the parts take that the places are cut into.
int64_t weight_product_floats(const Conv& conv, ProductMath math, bool warpgroups);
void weight_product(const WeightProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda
