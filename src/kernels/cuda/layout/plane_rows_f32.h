// SPDX-License-Identifier: Apache-2.0
// make_rows for FP32 planes whose pixels lie side by side.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {

// False, and nothing done, where the source is something else.
bool make_rows_of_planes(const Rows& rows, float* target, Stream stream);

}  // namespace retrograd::kernels::cuda
