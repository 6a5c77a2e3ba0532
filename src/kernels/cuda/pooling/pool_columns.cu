// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p)
//
// Windows are products of ranges along the axes, so sums are taken along one axis after the other. A block
// stages the lines of grad_output that it needs in shared memory as FP32. A thread walks down a strip of
// neighbouring columns: it adds a line over depths and across the windows that hold its columns, once for all
// of them, and keeps the sums of the last few lines in registers. Results leave through shared memory: what
// a block reads and writes is one run, or a run a line, and goes in 16-byte vectors whatever the width is.
// Bytes: grad_output once, but for the lines that neighbouring tiles have in common; grad_input once.
#include "kernels/cuda/pooling/pool_columns.h"
#include "kernels/cuda/pooling/pool_columns_block.h"
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T, class Kind>
__global__ void __launch_bounds__(kColumnsThreads, Kind::kSums < 20 ? 8 : 6)
    columns_kernel(const __grid_constant__ PoolColumns p, const T* __restrict__ y, T* __restrict__ x) {
  extern __shared__ float4 memory[];
  auto* const floats = reinterpret_cast<float*>(memory);
  auto* const staged = floats + kStripMargin;
  auto* const results = reinterpret_cast<T*>(floats + p.y_floats);
  const PoolColumnsTile t = columns_tile(p, blockIdx.x);
  stage<PoolElements<T>>(p, t, threadIdx.x, kColumnsThreads, y, staged);
  __syncthreads();
  if (p.divide) {
    divide(p, t, threadIdx.x, kColumnsThreads, staged);
    __syncthreads();
  }
  walk<PoolElements<T>, Kind>(p, t, threadIdx.x, kColumnsThreads, staged, results);
  __syncthreads();
  flush(p, t, threadIdx.x, kColumnsThreads, results, x);
}

template <class T>
void run(const Pool& pool, const PoolColumns& p, Stream stream) {
  with_walk_kind(walk_key(p), [&](auto kind) {
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
