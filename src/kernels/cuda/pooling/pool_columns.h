// SPDX-License-Identifier: Apache-2.0
// Average pooling through shared memory, forward and backward: any windows for which a tile fits.
#pragma once

#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::kernels::cuda {

void pool_columns(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut, Stream stream);

}  // namespace retrograd::kernels::cuda
