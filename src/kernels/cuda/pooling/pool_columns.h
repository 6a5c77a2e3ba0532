// SPDX-License-Identifier: Apache-2.0
// Average pooling backward, a thread a column of a tile: any windows of which at most kColumnsReach hold a
// place along an axis.
#pragma once

#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::kernels::cuda {

void pool_columns(const Pool& pool, bool channels_last, const ColumnsCut& cut, Stream stream);

}  // namespace retrograd::kernels::cuda
