// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p), gathered: each result is written once.
//
// Which kernel; and the one for windows of which too many hold a place for the others, or that shared memory
// has no room for: a thread makes a few results below each other, windows as they come.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_columns.h"
#include "kernels/cuda/pooling/pool_disjoint.h"
#include "kernels/cuda/pooling/pool_last.h"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_sliding.h"
#include "kernels/cuda/pooling/pool_staged.h"
#include "kernels/cuda/pooling/pool_vectors.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

struct Any {
  Windows windows;
  uint32_t threads;
  FastDiv vectors, columns, bands, depths;  // of a place; of an image: columns, bands of kRows rows
  FastDiv strides[3];
};

struct Held {
  int begin, end;
};
__device__ Held windows_holding(const Any& p, int axis, int index) {
  const WindowAxis& a = p.windows.axes[axis];
  const int shifted = index + a.pad;
  const int begin =
      shifted < a.kernel ? 0 : static_cast<int>(p.strides[axis].quotient(shifted - a.kernel)) + 1;
  return {begin, min(static_cast<int>(p.strides[axis].quotient(shifted)) + 1, a.y)};
}

// kCount neighbouring channels of a channels-last tensor; 1 with vectors = 1 walks a row-major one. A thread
// makes kRows results below each other, which have the windows of their column in common.
template <class T, int kCount, int kRows>
__global__ void __launch_bounds__(kThreads)
    any_kernel(const __grid_constant__ Any p, const T* __restrict__ y, T* __restrict__ x) {
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  uint32_t w = p.vectors.split(vector);
  uint32_t band = p.columns.split(w);
  uint32_t depth = p.bands.split(band);
  const int64_t image = p.depths.split(depth);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int step = static_cast<int>(p.vectors.divisor) * kCount;  // of a place
  const Held rd = windows_holding(p, 0, static_cast<int>(depth)),
             rw = windows_holding(p, 2, static_cast<int>(w));
  const T* const source = y + image * ad.y * ah.y * aw.y * step + vector * kCount;
  T* const target = x + image * ad.x * ah.x * aw.x * step + vector * kCount;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int h = static_cast<int>(band) * kRows + r;
    if (h >= ah.x) return;
    const Held rh = windows_holding(p, 1, h);
    float sums[kCount] = {};
    for (int od = rd.begin; od < rd.end; ++od)
      for (int oh = rh.begin; oh < rh.end; ++oh) {
        const T* const row = source + (od * ah.y + oh) * aw.y * step;
        const int rows = p.windows.uniform ? 1 : count_of(ad, od) * count_of(ah, oh);
        for (int ow = rw.begin; ow < rw.end; ++ow) {
          float values[kCount];
          load_pack<T, kCount>(row + ow * step, values);
          const float divisor =
              p.windows.uniform ? 1.0f : static_cast<float>(rows) * static_cast<float>(count_of(aw, ow));
#pragma unroll
          for (int i = 0; i < kCount; ++i) sums[i] += p.windows.uniform ? values[i] : values[i] / divisor;
        }
      }
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = fmaf(sums[i], p.windows.scale, 0.0f);  // no negative zeros
    store_pack<T, kCount>(target + ((static_cast<int>(depth) * ah.x + h) * aw.x + static_cast<int>(w)) * step,
                          sums);
  }
}

template <class T, int kCount, int kRows>
void launch_any(const Pool& pool, int64_t images, int64_t vectors, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t bands = (h.x + kRows - 1) / kRows;
  Any p;
  p.windows = windows_of(pool);
  p.threads = static_cast<uint32_t>(images * d.x * bands * w.x * vectors);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(w.x);
  p.bands = FastDiv(bands);
  p.depths = FastDiv(d.x);
  for (int i = 0; i < 3; ++i) p.strides[i] = FastDiv(pool.axes[i].stride);
  any_kernel<T, kCount, kRows><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
}

template <class T>
void run_any(const Pool& pool, bool last, Stream stream) {
  last ? launch_any<T, 1, 4>(pool, pool.batch, pool.channels, stream)
       : launch_any<T, 1, 4>(pool, pool.batch * pool.channels, 1, stream);
}

}  // namespace

void pool_backward(const Pool& pool, bool channels_last, PoolKernel kernel, const ColumnsCut& cut,
                   Stream stream) {
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return channels_last ? pool_last_side_by_side(pool, divisor_of(pool).scale, stream)
                           : pool_disjoint(pool, divisor_of(pool).scale, stream);
    case PoolKernel::kStaged:
      return pool_staged(pool, divisor_of(pool).scale, stream);
    case PoolKernel::kSliding:
      return pool_sliding(pool, divisor_of(pool).scale, stream);
    case PoolKernel::kColumns:
      return pool_columns(pool, channels_last, cut, stream);
    case PoolKernel::kVectors:
      return pool_vectors(pool, stream);
    case PoolKernel::kAny:
      break;
  }
  with_type(pool.x.dtype, [&](auto type) { run_any<decltype(type)>(pool, channels_last, stream); });
}

}  // namespace retrograd::kernels::cuda
