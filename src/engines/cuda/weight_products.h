// SPDX-License-Identifier: Apache-2.0
// grad_weight of dense convolutions in 16-bit types on Hopper's warpgroup products, where that takes less
// time than cuDNN.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& weight_products();
// Everywhere: for those who have no cuDNN.
const Candidate& every_weight_product();

}  // namespace retrograd::engines::cuda
