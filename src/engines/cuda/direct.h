// SPDX-License-Identifier: Apache-2.0
// The formula, for steps that find addresses they cannot read.
#pragma once

#include "kernels/cuda/shapes.h"
#include "problem/pass.h"

namespace retrograd::engines::cuda {

// `conv` is the pass with addresses.
void run_directly(problem::ConvPassKind kind, const kernels::cuda::Conv& conv, kernels::cuda::Stream stream);

}  // namespace retrograd::engines::cuda
