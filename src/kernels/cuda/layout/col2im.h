// SPDX-License-Identifier: Apache-2.0
// The second half of a grad_input whose taps are channels of a product: every pixel of x adds what the
// windows that hold it have for it.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// columns: [image][tap][x channel][place of y] in FP32. Of one group; x has fewer than 2^31 elements. A bias
// is added.
void add_columns(const Conv& conv, const float* columns, Stream stream);

}  // namespace retrograd::kernels::cuda
