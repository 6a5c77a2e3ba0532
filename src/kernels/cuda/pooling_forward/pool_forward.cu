// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p): which kernel.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/pooling/pool_kernels.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::kernels::cuda {

void pool_forward(const Pool& pool, bool channels_last, const ForwardChoice& choice, float* sums,
                  Stream stream) {
  const int vector = forward_vector(pool, channels_last, alignment_of({pool.x.data, pool.y.data}));
  switch (choice.kernel) {
    case ForwardKernel::kColumns:
      return pool_columns(pool, channels_last, true, choice.cut, stream);
    case ForwardKernel::kWhole:
      return pool_whole(pool, sums, stream);
    case ForwardKernel::kShared:
      return pool_shared(pool, vector, sums, stream);
    case ForwardKernel::kVectors:
      if (vector > 1) return pool_vectors(pool, true, stream);
      break;  // at addresses between vectors
    case ForwardKernel::kAny:
      break;
  }
  pool_any(pool, channels_last, true, stream);
}

}  // namespace retrograd::kernels::cuda
