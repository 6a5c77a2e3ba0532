// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p) on channels-last tensors.
//
// A thread takes 16 bytes of channels of a column and walks down a band of rows. Each line of grad_output
// gives one sum, across the windows that hold the column and over the depths that hold the plane; the last
// few of those are kept in registers, and a place is the sum of the ones that hold it. What neighbouring
// columns have in common comes from L1. The next line is under way while one is added.
// Bytes: grad_output once, but for lines that two bands need; grad_input once.
#include "kernels/cuda/pooling/pool_elements.cuh"
#include "kernels/cuda/pooling/pool_vectors_walk.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 128;

template <class T, int kReach, bool kExact, bool kDeep>
__global__ void __launch_bounds__(kThreads, kReach <= 4 ? 5 : 2)
    vectors_kernel(const __grid_constant__ PoolVectors p, const T* __restrict__ y, T* __restrict__ x) {
  walk_vectors<PoolElements<T>, kReach, kExact, kDeep>(p, blockIdx.x * kThreads + threadIdx.x, y, x);
}

template <class T>
void run(const Pool& pool, Stream stream) {
  const PoolVectors p = vectors_of(pool);
  with_vectors_kind(p, [&](auto reach, auto exact, auto deep) {
    vectors_kernel<T, reach(), exact(), deep()>
        <<<(p.threads + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
            p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
  });
}

}  // namespace

void pool_vectors(const Pool& pool, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { run<decltype(type)>(pool, stream); });
}

}  // namespace retrograd::kernels::cuda
