// SPDX-License-Identifier: Apache-2.0
// forward   y[p] = Σ_{q in window p} x[q] / divisor(p)
// backward  grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p)
//
// Windows are products of ranges along the axes, so sums are taken along one axis after the other. A block
// copies the places of the source that it needs to shared memory, makes sums from there (see
// pool_columns_block.h), and results leave through shared memory: what a block reads and writes is one run,
// or a run a line, and goes in 16-byte vectors whatever the width is.
// Bytes: the source once, but for the lines that neighbouring tiles have in common; the result once.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pooling/pool_columns_block.h"
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T, class Kind>
__global__ void __launch_bounds__(kColumnsThreads, Kind::kPlain ? 8 : 6)
    columns_kernel(const __grid_constant__ PoolColumns p, const T* __restrict__ source,
                   T* __restrict__ result) {
  using Codec = PoolElements<T>;
  extern __shared__ uint4 memory[];
  auto* const bytes = reinterpret_cast<unsigned char*>(memory);
  auto* const staged = reinterpret_cast<T*>(bytes) + kStripMargin;
  auto* const sums = reinterpret_cast<float*>(bytes + p.shared.sums_at);
  auto* const results = reinterpret_cast<T*>(bytes + p.shared.results_at);
  const ColumnsTile t = columns_tile<Kind::kForward>(p, blockIdx.x);
  stage(source_runs(p, t), threadIdx.x, kColumnsThreads, source, staged);
  if constexpr (Kind::kIsStrip && !Kind::kPlain)
    if (p.divide) reciprocals<Codec, Kind::kForward>(p, t, threadIdx.x, kColumnsThreads, sums + kStripMargin);
  copy_async_wait();
  __syncthreads();
  if constexpr (Kind::kIsStrip) {
    walk<Codec, Kind>(p, t, threadIdx.x, kColumnsThreads, staged, sums + kStripMargin, results);
  } else {
    add_down<Codec, Kind::kForward>(p, t, threadIdx.x, kColumnsThreads, staged, sums);
    __syncthreads();
    add_across<Codec, Kind::kForward>(p, t, threadIdx.x, kColumnsThreads, sums, results);
  }
  __syncthreads();
  flush_runs(result_runs(p, t), threadIdx.x, kColumnsThreads, results, result);
}

}  // namespace

void pool_columns(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut, Stream stream) {
  const PoolColumns p = columns_of(pool, channels_last, forward, cut);
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    const void* const source = forward ? pool.x.data : pool.y.data;
    void* const result = forward ? pool.y.data : pool.x.data;
    with_kind<sizeof(T)>(window_key(p, forward), [&](auto kind) {
      start(columns_kernel<T, decltype(kind)>, p.blocks, kColumnsThreads, p.shared.bytes, stream, p, source,
            result);
    });
  });
}

}  // namespace retrograd::kernels::cuda
