// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p)
//
// A block stages the places of x that its results' windows hold as FP32 in shared memory, 16 bytes a load
// whatever the width and the channels are, and the results leave in 16-byte vectors, too (see the header).
// Bytes: x once, but for the places that neighbouring tiles have in common; y once.
#include <type_traits>

#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_forward_columns.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T, class Kind>
__global__ void __launch_bounds__(kForwardThreads, Kind::kForwardSums < 12 ? 8 : 6)
    forward_kernel(const __grid_constant__ ForwardColumns p, const T* __restrict__ x, T* __restrict__ y) {
  extern __shared__ float4 memory[];
  auto* const floats = reinterpret_cast<float*>(memory);
  auto* const staged = floats + kStripMargin;
  auto* const results = reinterpret_cast<T*>(floats + p.x_floats);
  const ForwardTile t = forward_tile(p, blockIdx.x);
  stage_forward<PoolElements<T>>(p, t, threadIdx.x, kForwardThreads, x, staged);
  __syncthreads();
  add<PoolElements<T>, Kind>(p, t, threadIdx.x, kForwardThreads, staged, results);
  __syncthreads();
  flush_lines(t.y, threadIdx.x, kForwardThreads, results, y);
}

}  // namespace

void pool_forward_columns(const Pool& pool, bool channels_last, const ForwardCut& cut, Stream stream) {
  const ForwardColumns p = forward_columns_of(pool, channels_last, cut);
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_walk_kind(walk_key(p), [&](auto kind) {
      using Kind = std::conditional_t<kind.kIsStrip, decltype(kind), Column<1>>;
      forward_kernel<T, Kind><<<p.blocks, kForwardThreads, static_cast<size_t>(p.bytes), stream>>>(
          p, static_cast<const T*>(pool.x.data), static_cast<T*>(pool.y.data));
    });
  });
}

}  // namespace retrograd::kernels::cuda
