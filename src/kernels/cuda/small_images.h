// SPDX-License-Identifier: Apache-2.0
// Gradients of small convolutions, with any strides and types, in few launches: at these sizes launches and
// index arithmetic are what takes time. Fewer than 2^31 elements everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// What a block needs of shared memory.
size_t small_grad_input_bytes(const Conv& conv);
size_t small_grad_weight_bytes(const Conv& conv);

void small_grad_input(const Conv& conv, Stream stream);

// The workspace holds a float for each part of each weight; nothing where there is one part.
int64_t small_parts(const Conv& conv);
void small_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
