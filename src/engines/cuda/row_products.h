// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products over rows of channels on a GPU's tensor cores. Any strides and types; an
// operand that is not rows of channels already becomes so in the workspace. FP32 is made of three TF32
// products, or of one where the caller allows it (tf32_products).
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& row_products();
const Candidate& tf32_products();

}  // namespace retrograd::engines::cuda
