// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p)
//
// Windows are products of ranges along the axes, so sums are taken along one axis after the other: over
// depths while grad_output is staged in shared memory, across windows of a line, and down over the lines that
// hold a place, the last few of which a thread keeps in registers. Results leave through shared memory: what
// a block writes is one run, or a run a line, and goes out in 16-byte vectors whatever the width is.
// Bytes: grad_output once, but for the lines that neighbouring tiles have in common; grad_input once.
#include "kernels/cuda/pooling/pool_columns.h"
#include "kernels/cuda/pooling/pool_columns_block.h"
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T, class Kind>
__global__ void __launch_bounds__(kColumnsThreads, Kind::kReach <= 4 ? 5 : 3)
    columns_kernel(const __grid_constant__ PoolColumns p, const T* __restrict__ y, T* __restrict__ x) {
  extern __shared__ float4 memory[];
  auto* const staged = reinterpret_cast<float*>(memory);
  auto* const results = reinterpret_cast<T*>(staged + p.y_floats);
  const PoolColumnsTile t = columns_tile(p, blockIdx.x);
  stage<PoolElements<T>>(p, t, threadIdx.x, kColumnsThreads, y, staged);
  __syncthreads();
  if (!p.windows.uniform) {
    divide(p, t, threadIdx.x, kColumnsThreads, staged);
    __syncthreads();
  }
  walk<PoolElements<T>, Kind>(p, t, threadIdx.x, kColumnsThreads, staged, results);
  __syncthreads();
  flush(p, t, threadIdx.x, kColumnsThreads, results, x);
}

template <class T>
void run(const Pool& pool, const PoolColumns& p, Stream stream) {
  with_walk_kind(p, [&](auto kind) {
    columns_kernel<T, decltype(kind)><<<p.blocks, kColumnsThreads, static_cast<size_t>(p.bytes), stream>>>(
        p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
  });
}

}  // namespace

void pool_columns(const Pool& pool, bool channels_last, const ColumnsCut& cut, Stream stream) {
  const PoolColumns p = columns_of(pool, channels_last, cut);
  with_type(pool.x.dtype, [&](auto type) { run<decltype(type)>(pool, p, stream); });
}

}  // namespace retrograd::kernels::cuda
