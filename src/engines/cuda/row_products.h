// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products over rows of channels on a GPU: tensor cores for 16-bit operands and
// narrower, FP32 otherwise. Any strides and types; an operand that is not rows of channels already becomes so
// in the workspace.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& row_products();

}  // namespace retrograd::engines::cuda
