// SPDX-License-Identifier: Apache-2.0
// The second half of weight_product: the sum of the parts, in order, to where the weights lie.
#pragma once

#include "kernels/cuda/weight_product.h"

namespace retrograd::kernels::cuda {

// Parts as [part][group][y channel][tap][x channel, filled up] in the product's workspace.
void add_weight_parts(const WeightProduct& product, int64_t parts, Stream stream);

}  // namespace retrograd::kernels::cuda
