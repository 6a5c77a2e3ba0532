// SPDX-License-Identifier: Apache-2.0
// Average pooling on channels-last tensors, forward and backward.
//
// A thread takes 16 bytes of channels of a column and walks down a band of rows. Each line of the source is
// added across the pixels, or windows, of its column and over depths once; sums of the last few steps are
// kept in registers. What neighbouring columns have in common comes from L1. The next line is under way while
// one is added. Bytes: the source once, but for lines that two bands need; the result once.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"
#include "kernels/cuda/pooling/pool_vectors_walk.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 128;

template <class T, bool kForward, int kTaps, int kReach>
__global__ void __launch_bounds__(kThreads, kTaps <= 4 && kReach <= 4 ? 5 : 2)
    vectors_kernel(const __grid_constant__ PoolVectors p, const T* __restrict__ source,
                   T* __restrict__ result) {
  walk_vectors<PoolElements<T>, kForward, kTaps, kReach>(p, blockIdx.x * kThreads + threadIdx.x, source,
                                                         result);
}

template <class T, bool kForward>
void run(const Pool& pool, Stream stream) {
  const PoolVectors p = vectors_of(pool, kForward);
  const void* const source = kForward ? pool.x.data : pool.y.data;
  void* const result = kForward ? pool.y.data : pool.x.data;
  with_vectors_kind(p, [&](auto taps, auto reach) {
    start(vectors_kernel<T, kForward, taps(), reach()>, (p.threads + kThreads - 1) / kThreads, kThreads, 0,
          stream, p, source, result);
  });
}

}  // namespace

void pool_vectors(const Pool& pool, bool forward, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    forward ? run<T, true>(pool, stream) : run<T, false>(pool, stream);
  });
}

}  // namespace retrograd::kernels::cuda
