// SPDX-License-Identifier: Apache-2.0
// What the pooling kernels are told beside sizes.
#pragma once

#include "kernels/cuda/pooling/pool.h"

namespace retrograd::kernels::cuda {

// Whether every window divides by the same number, and what to multiply with then.
struct PoolDivisor {
  bool uniform;
  float scale;
};
PoolDivisor divisor_of(const Pool& pool);

// pool_staged: planes of a block; 0: they are too large, or no whole number of 16-byte chunks.
int staged_planes(const Pool& pool);

}  // namespace retrograd::kernels::cuda
