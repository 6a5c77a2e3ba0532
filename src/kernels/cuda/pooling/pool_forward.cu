// SPDX-License-Identifier: Apache-2.0
// y[p] = Σ_{q in window p} x[q] / divisor(p)
//
// Bytes: x once, y once. What a window shares with others comes from L1; index arithmetic is the next limit,
// so: FastDiv, 32-bit offsets, several results a thread.
//   tiles   2x2 and 3x3 windows, strides known to the compiler: a thread makes kRows results below each other
//           and adds each row of x across once, for all results that it is part of. Depths are walked one by
//           one.
//   each    any windows, a thread a result.
// Both take kV neighbouring channels of a channels-last tensor a thread, or one; `each` walks planes, too.
// Places outside are never read; what stands for them is added as zero.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_forward.h"
#include "kernels/cuda/pooling/pool_forward_columns.h"
#include "kernels/cuda/pooling/pool_whole.h"
#include "kernels/cuda/pooling/pool_windows.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Images are planes or volumes of a channel, or of all channels where those are innermost.
struct Cut {
  Windows windows;
  uint32_t threads;
  FastDiv vectors, columns, rows, depths;  // of a place; groups of results of an image
};

// Blocks of a multiprocessor: enough threads to keep memory busy, registers for the sums and some rows.
constexpr int blocks_at_once(int vector) { return vector == 1 ? 4 : vector == 4 ? 3 : 2; }

template <class T, int kK, int kS, int kRows, int kV>
__global__ void __launch_bounds__(kThreads, blocks_at_once(kV))
    tiles_kernel(const __grid_constant__ Cut p, const T* __restrict__ x, T* __restrict__ y) {
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  uint32_t depth = p.rows.split(band);
  const int64_t image = p.depths.split(depth);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int step = static_cast<int>(p.vectors.divisor) * kV;  // of a place
  const int od = static_cast<int>(depth), oh0 = static_cast<int>(band) * kRows, ow = static_cast<int>(column);
  const int h0 = oh0 * kS - ah.pad, w0 = ow * kS - aw.pad;
  constexpr int kHigh = (kRows - 1) * kS + kK;
  const T* const source = x + image * ad.x * ah.x * aw.x * step + vector * kV;
  float sums[kRows][kV] = {};
  const Places depths = places_of(ad, od);
  for (int z = depths.begin; z < depths.end; ++z) {
#pragma unroll
    for (int r = 0; r < kHigh; ++r) {
      const bool live = static_cast<unsigned>(h0 + r) < static_cast<unsigned>(ah.x);
      Pack<T, kV> row[kK];
#pragma unroll
      for (int c = 0; c < kK; ++c) {
        row[c] = Pack<T, kV>{};
        if (live && static_cast<unsigned>(w0 + c) < static_cast<unsigned>(aw.x))
          row[c] =
              *reinterpret_cast<const Pack<T, kV>*>(source + ((z * ah.x + h0 + r) * aw.x + w0 + c) * step);
      }
#pragma unroll
      for (int v = 0; v < kV; ++v) {
        float across = to_float(row[0].values[v]);
#pragma unroll
        for (int i = 1; i < kK; ++i) across += to_float(row[i].values[v]);
#pragma unroll
        for (int a = 0; a < kRows; ++a)
          if (a * kS <= r && r < a * kS + kK) sums[a][v] += across;
      }
    }
  }
  T* const target = y + image * ad.y * ah.y * aw.y * step + vector * kV;
#pragma unroll
  for (int a = 0; a < kRows; ++a) {
    if (oh0 + a >= ah.y) return;
    average(p.windows, od, oh0 + a, ow, sums[a]);
    store_pack<T, kV>(target + ((od * ah.y + oh0 + a) * aw.y + ow) * step, sums[a]);
  }
}

template <class T, int kV>
__global__ void __launch_bounds__(kThreads)
    each_kernel(const __grid_constant__ Cut p, const T* __restrict__ x, T* __restrict__ y) {
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  T* const target = y + static_cast<int64_t>(vector) * kV;
  uint32_t ow = p.vectors.split(vector);
  uint32_t oh = p.columns.split(ow);
  uint32_t od = p.rows.split(oh);
  const int64_t image = p.depths.split(od);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int step = static_cast<int>(p.vectors.divisor) * kV;
  const Places depths = places_of(ad, static_cast<int>(od)), rows = places_of(ah, static_cast<int>(oh)),
               columns = places_of(aw, static_cast<int>(ow));
  const T* const source = x + image * ad.x * ah.x * aw.x * step + vector * kV;
  const int count = columns.end - columns.begin;
  float sums[kV] = {};
  for (int z = depths.begin; z < depths.end; ++z)
    for (int h = rows.begin; h < rows.end; ++h) {
      const T* const row = source + ((z * ah.x + h) * aw.x + columns.begin) * step;
      float across[kV] = {};
#pragma unroll 4
      for (int i = 0; i < count; ++i) {
        float values[kV];
        load_pack<T, kV>(row + i * step, values);
#pragma unroll
        for (int v = 0; v < kV; ++v) across[v] += values[v];
      }
#pragma unroll
      for (int v = 0; v < kV; ++v) sums[v] += across[v];
    }
  average(p.windows, static_cast<int>(od), static_cast<int>(oh), static_cast<int>(ow), sums);
  store_pack<T, kV>(target, sums);
}

// Threads of `rows` results and `vector` channels.
Cut cut_of(const Pool& pool, bool last, int rows, int vector) {
  const int64_t vectors = last ? pool.channels / vector : 1,
                images = last ? pool.batch : pool.batch * pool.channels;
  const int64_t across = pool.axes[2].y, down = ceil_div(pool.axes[1].y, rows);
  Cut p;
  p.windows = windows_of(pool);
  p.threads = static_cast<uint32_t>(images * pool.axes[0].y * down * across * vectors);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(across);
  p.rows = FastDiv(down);
  p.depths = FastDiv(pool.axes[0].y);
  return p;
}

template <class T, int kK, int kS, int kRows, int kV>
void launch_tiles(const Pool& pool, Stream stream) {
  const Cut p = cut_of(pool, true, kRows, kV);
  tiles_kernel<T, kK, kS, kRows, kV><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.x.data), static_cast<T*>(pool.y.data));
}

template <class T, int kV>
void launch_each(const Pool& pool, bool last, Stream stream) {
  const Cut p = cut_of(pool, last, 1, kV);
  each_kernel<T, kV><<<blocks_for(p.threads), kThreads, 0, stream>>>(p, static_cast<const T*>(pool.x.data),
                                                                     static_cast<T*>(pool.y.data));
}

template <class T, int kV>
void run_windows(const Pool& pool, ForwardKernel kernel, bool last, Stream stream) {
  if (kernel == ForwardKernel::kEach) return launch_each<T, kV>(pool, last, stream);
  const PoolAxis& w = pool.axes[2];
  if (w.kernel == 2) return launch_tiles<T, 2, 2, 2, kV>(pool, stream);
  if (w.stride == 2) return launch_tiles<T, 3, 2, 2, kV>(pool, stream);
  launch_tiles<T, 3, 1, 4, kV>(pool, stream);
}

template <class T>
void run(const Pool& pool, bool last, ForwardKernel kernel, float* sums, Stream stream) {
  const int vector = forward_vector(pool, last, alignment_of({pool.x.data, pool.y.data}));
  if (kernel == ForwardKernel::kWhole) return pool_whole(pool, sums, stream);
  if (kernel == ForwardKernel::kShared) return pool_shared(pool, vector, sums, stream);
  constexpr int kWide = 16 / sizeof(T);
  vector == kWide ? run_windows<T, kWide>(pool, kernel, last, stream)
                  : run_windows<T, 1>(pool, kernel, last, stream);
}

}  // namespace

void pool_forward(const Pool& pool, bool channels_last, const ForwardChoice& choice, float* sums,
                  Stream stream) {
  if (choice.kernel == ForwardKernel::kColumns)
    return pool_forward_columns(pool, channels_last, choice.cut, stream);
  with_type(pool.x.dtype,
            [&](auto type) { run<decltype(type)>(pool, channels_last, choice.kernel, sums, stream); });
}

}  // namespace retrograd::kernels::cuda
