// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p), two axes.
//
// A block stages the places of x that its results' windows hold as FP32 in shared memory, 16 bytes a load
// whatever the width and the channels are; a thread adds one window after the other, and the results leave in
// 16-byte vectors, too. Bytes: x once, but for the places that neighbouring tiles have in common; y once.
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_forward_columns.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kForwardThreads, 5)
    forward_kernel(const __grid_constant__ ForwardColumns p, const T* __restrict__ x, T* __restrict__ y) {
  extern __shared__ float4 memory[];
  auto* const staged = reinterpret_cast<float*>(memory);
  auto* const results = reinterpret_cast<T*>(staged + p.x_floats);
  const ForwardTile t = forward_tile(p, blockIdx.x);
  stage_lines<PoolElements<T>>(t.x, threadIdx.x, kForwardThreads, x, staged);
  __syncthreads();
  add_windows<PoolElements<T>>(p, t, threadIdx.x, kForwardThreads, staged, results);
  __syncthreads();
  flush_lines(t.y, threadIdx.x, kForwardThreads, results, y);
}

}  // namespace

void pool_forward_columns(const Pool& pool, bool channels_last, const ForwardCut& cut, Stream stream) {
  const ForwardColumns p = forward_columns_of(pool, channels_last, cut);
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    forward_kernel<T><<<p.blocks, kForwardThreads, static_cast<size_t>(p.bytes), stream>>>(
        p, static_cast<const T*>(pool.x.data), static_cast<T*>(pool.y.data));
  });
}

}  // namespace retrograd::kernels::cuda
