// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = scale · Σ grad_output of the 3x3 around q, on row-major planes whose rows begin anywhere.
//
// Rows of an odd number of 16-bit elements cannot be read or written in wide pieces, but several planes in a
// row of memory can. A block copies them into shared memory 16 bytes at a time, its threads walk down a
// column each and leave results in shared memory, and these go out 16 bytes at a time. Bytes: grad_output
// once, grad_input once; four accesses of shared memory a result.
#include "kernels/cuda/copy_async.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_staged.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kMostThreads = 512;

struct Staged {
  int height, width;
  int planes;       // of a block
  FastDiv columns;  // of a block's item: which plane
  float scale;
};

template <class T>
__device__ float across(const T* row, bool left, bool right) {
  float sum = to_float(row[0]);
  if (left) sum += to_float(row[-1]);
  if (right) sum += to_float(row[1]);
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kMostThreads)
    staged_kernel(const __grid_constant__ Staged p, const T* y, T* x) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int plane = p.height * p.width;
  const int chunks = p.planes * plane * static_cast<int>(sizeof(T)) / 16;
  const int64_t first = blockIdx.x * int64_t{p.planes} * plane;
  T* const from = reinterpret_cast<T*>(shared);
  T* const to = from + p.planes * plane;
  const auto threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < chunks; i += threads)
    copy_async_16(shared + i * 16, reinterpret_cast<const unsigned char*>(y + first) + i * 16);
  copy_async_wait();
  __syncthreads();
  for (int item = thread; item < p.planes * p.width; item += threads) {
    uint32_t column = static_cast<uint32_t>(item);
    const int offset = static_cast<int>(p.columns.split(column)) * plane + static_cast<int>(column);
    const bool left = column > 0, right = static_cast<int>(column) < p.width - 1;
    const T* source = from + offset;
    T* target = to + offset;
    float above = 0, here = across(source, left, right);
#pragma unroll 4
    for (int r = 1; r < p.height; ++r) {
      source += p.width;
      const float below = across(source, left, right);
      *target = from_float<T>(fmaf(above + here + below, p.scale, 0.0f));  // no negative zeros
      target += p.width;
      above = here;
      here = below;
    }
    *target = from_float<T>(fmaf(above + here, p.scale, 0.0f));
  }
  __syncthreads();
  const auto* results = reinterpret_cast<const uint4*>(to);
  auto* out = reinterpret_cast<uint4*>(x + first);
  for (int i = thread; i < chunks; i += threads) out[i] = results[i];
}

}  // namespace

void pool_staged(const Pool& pool, float scale, Stream stream) {
  const PoolAxis &h = pool.axes[1], &w = pool.axes[2];
  Staged p;
  p.height = static_cast<int>(h.x);
  p.width = static_cast<int>(w.x);
  p.planes = staged_planes(pool);
  p.columns = FastDiv(w.x);
  p.scale = scale;
  const int64_t blocks = pool.batch * pool.channels * pool.axes[0].x / p.planes;
  const int columns = p.planes * p.width;
  const int threads = columns < kMostThreads ? (columns + 31) / 32 * 32 : kMostThreads;
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    const size_t bytes = 2 * sizeof(T) * static_cast<size_t>(p.planes) * h.x * w.x;
    staged_kernel<T><<<static_cast<unsigned>(blocks), threads, bytes, stream>>>(
        p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
  });
}

}  // namespace retrograd::kernels::cuda
