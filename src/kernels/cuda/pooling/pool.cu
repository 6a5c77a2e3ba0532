// SPDX-License-Identifier: Apache-2.0
// Which kernel.
#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_kernels.h"
#include "kernels/cuda/pooling/pool_plan.h"

namespace retrograd::kernels::cuda {

void pool_backward(const Pool& pool, bool channels_last, PoolKernel kernel, const ColumnsCut& cut,
                   Stream stream) {
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return channels_last ? pool_last_side_by_side(pool, divisor_of(pool).scale, stream)
                           : pool_disjoint(pool, divisor_of(pool).scale, stream);
    case PoolKernel::kColumns:
      return pool_columns(pool, channels_last, false, cut, stream);
    case PoolKernel::kVectors:
      return pool_vectors(pool, false, stream);
    case PoolKernel::kAny:
      break;
  }
  pool_any(pool, channels_last, false, stream);
}

}  // namespace retrograd::kernels::cuda
