// SPDX-License-Identifier: Apache-2.0
// The sum of one value a thread over a block, always in the same order.
#pragma once

namespace retrograd::kernels::cuda {

__device__ inline float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

// Valid in thread 0. kThreads is a multiple of 32. Every thread of the block must call it.
template <int kThreads>
__device__ float block_sum(float value) {
  __shared__ float of_warp[kThreads / 32];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) value = warp_sum(threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : 0.0f);
  __syncthreads();  // before the next sum writes
  return value;
}

}  // namespace retrograd::kernels::cuda
