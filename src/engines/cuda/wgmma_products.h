// SPDX-License-Identifier: Apache-2.0
// forward and grad_input in FP16 and BF16 as products of warpgroups on Hopper GPUs: operands as rows of
// channels, results where they belong.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Where it was measured to be faster than cuDNN, or cuDNN does not compute it right.
const Candidate& wgmma_first();
// Everything the kernels take.
const Candidate& wgmma_products();

}  // namespace retrograd::engines::cuda
