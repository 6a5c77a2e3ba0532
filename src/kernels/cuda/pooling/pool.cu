// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p), gathered: each result is written once.
//
// Bytes: grad_output once, grad_input once. All kernels are limited by index arithmetic before they are by
// memory, so: FastDiv, several results a thread, kernel and stride known to the compiler where they are
// common.
// clang-format off
//   disjoint   windows side by side, no padding: pool_disjoint.cu
//   sliding    3x3 windows, stride 1 or 2, padding 1: a thread takes a few columns and eight rows; each sum of a row
//              is used by all results that need it
//   tiles      2x2 and 3x3 windows, any padding and divisors: pool_tiles.cu
//   anything   a thread a few results below each other, windows as they come
// clang-format on
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_disjoint.h"
#include "kernels/cuda/pooling/pool_last.h"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_staged.h"
#include "kernels/cuda/pooling/pool_tiles.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

// ---- 3x3 windows

__host__ __device__ constexpr int floor_div(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }

// Which windows hold the place r, counted from the first window of a tile that starts at a multiple of kS:
// first(r) to last(r).
template <int kK, int kS, int kP>
struct Holding {
  __host__ __device__ static constexpr int first(int r) { return floor_div(r + kP - kK, kS) + 1; }
  __host__ __device__ static constexpr int last(int r) { return floor_div(r + kP, kS); }
};

struct Sliding {
  uint32_t threads;
  FastDiv columns, bands;  // of a plane: groups of kCols columns, of kRows rows
  int xh, xw, yh, yw;
  float scale;
};

template <class T, int kS, int kRows, int kCols, bool kPacked>
__global__ void __launch_bounds__(kThreads) sliding_kernel(Sliding p, const T* y, T* x) {
  using H = Holding<3, kS, 1>;
  uint32_t number = thread_number();
  if (number >= p.threads) return;
  uint32_t band = p.columns.split(number);
  const uint32_t plane = p.bands.split(band);
  const int x0 = static_cast<int>(number) * kCols, h0 = static_cast<int>(band) * kRows;
  const int ox = x0 / kS, oh = h0 / kS;
  constexpr int kFirst = H::first(0), kLastRow = H::last(kRows - 1), kLastCol = H::last(kCols - 1);
  const T* source = y + static_cast<int64_t>(plane) * p.yh * p.yw;
  float sums[kLastRow - kFirst + 1][kCols];  // of the windows of a row that hold each column
#pragma unroll
  for (int r = kFirst; r <= kLastRow; ++r) {
    float row[kLastCol - kFirst + 1];
    const bool live = static_cast<unsigned>(oh + r) < static_cast<unsigned>(p.yh);
#pragma unroll
    for (int c = kFirst; c <= kLastCol; ++c)
      row[c - kFirst] = live && static_cast<unsigned>(ox + c) < static_cast<unsigned>(p.yw)
                            ? to_float(source[(oh + r) * p.yw + ox + c])
                            : 0.0f;
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      float sum = row[H::first(c) - kFirst];
#pragma unroll
      for (int i = H::first(c) + 1; i <= H::last(c); ++i) sum += row[i - kFirst];
      sums[r - kFirst][c] = sum;
    }
  }
  T* target = x + static_cast<int64_t>(plane) * p.xh * p.xw + x0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (h0 + r >= p.xh) return;
    float results[kCols];
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      float sum = sums[H::first(r) - kFirst][c];
#pragma unroll
      for (int i = H::first(r) + 1; i <= H::last(r); ++i) sum += sums[i - kFirst][c];
      results[c] = fmaf(sum, p.scale, 0.0f);  // no negative zeros
    }
    T* row = target + static_cast<int64_t>(h0 + r) * p.xw;
    if constexpr (kPacked) {
      store_pack<T, kCols>(row, results);
    } else {
#pragma unroll
      for (int c = 0; c < kCols; ++c)
        if (x0 + c < p.xw) row[c] = from_float<T>(results[c]);
    }
  }
}

template <class T, int kS, int kCols, bool kPacked>
void launch_sliding(const Pool& pool, float scale, Stream stream) {
  constexpr int kRows = 8;
  const PoolAxis &h = pool.axes[1], &w = pool.axes[2];
  const int64_t columns = (w.x + kCols - 1) / kCols, bands = (h.x + kRows - 1) / kRows;
  Sliding p;
  p.threads = static_cast<uint32_t>(pool.batch * pool.channels * pool.axes[0].x * columns * bands);
  p.columns = FastDiv(columns);
  p.bands = FastDiv(bands);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.scale = scale;
  sliding_kernel<T, kS, kRows, kCols, kPacked><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
}

// ---- any windows

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

// ---- which

template <class T>
void run_planes(const Pool& pool, PoolKernel kernel, Stream stream) {
  const PoolDivisor divisor = divisor_of(pool);
  if (kernel == PoolKernel::kDisjoint) return pool_disjoint(pool, divisor.scale, stream);
  if (kernel == PoolKernel::kStaged) return pool_staged(pool, divisor.scale, stream);
  if (kernel == PoolKernel::kSliding) {
    const bool even = pool.axes[2].x % 2 == 0 && is_aligned(pool.x.data, 2 * sizeof(T));
    if (pool.axes[2].stride == 2)
      return even ? launch_sliding<T, 2, 2, true>(pool, divisor.scale, stream)
                  : launch_sliding<T, 2, 2, false>(pool, divisor.scale, stream);
    return even ? launch_sliding<T, 1, 2, true>(pool, divisor.scale, stream)
                : launch_sliding<T, 1, 1, false>(pool, divisor.scale, stream);
  }
  if (kernel == PoolKernel::kTiles) return pool_tiles(pool, false, stream);
  launch_any<T, 1, 4>(pool, pool.batch * pool.channels, 1, stream);
}

template <class T>
void run_channels_last(const Pool& pool, PoolKernel kernel, Stream stream) {
  const PoolDivisor divisor = divisor_of(pool);
  constexpr int kWide = 16 / sizeof(T);
  if (kernel == PoolKernel::kDisjoint) return pool_last_side_by_side(pool, divisor.scale, stream);
  if (kernel == PoolKernel::kSliding) return pool_last_sliding(pool, divisor.scale, stream);
  if (kernel == PoolKernel::kTiles) return pool_tiles(pool, true, stream);
  if (kernel == PoolKernel::kVectors)
    return launch_any<T, kWide, 1>(pool, pool.batch, pool.channels / kWide, stream);
  launch_any<T, 1, 4>(pool, pool.batch, pool.channels, stream);
}

}  // namespace

void pool_planes(const Pool& pool, PoolKernel kernel, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { run_planes<decltype(type)>(pool, kernel, stream); });
}

void pool_channels_last(const Pool& pool, PoolKernel kernel, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { run_channels_last<decltype(type)>(pool, kernel, stream); });
}

}  // namespace retrograd::kernels::cuda
