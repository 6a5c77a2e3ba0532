// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_{p : q in window p} y[p] / divisor(p), windows of 2x2 or 3x3 in two axes.
//
// A thread makes kRows x kCols results of a channel, or of kV neighbouring channels of a channels-last
// tensor. With kPhase, the padding modulo the stride, known to the compiler, so is which windows hold which
// of its results: each row of y is read once, added across, and added to the rows of x that need it. Divisors
// come from a table of reciprocals in shared memory, an entry for each count of places along each axis. Lanes
// lie along rows, over as many rows and planes as they reach. Bytes: y once, x once; places and windows
// outside are never read, what stands for them is added as zero.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_tiles.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Which windows hold the place r of a tile, counted from the window (first place + padding − kPhase) / kS.
template <int kK, int kS, int kPhase>
struct Holding {
  __host__ __device__ static constexpr int floored(int a) { return a / kS - (a % kS < 0 ? 1 : 0); }
  __host__ __device__ static constexpr int first(int r) { return floored(r + kPhase - kK) + 1; }
  __host__ __device__ static constexpr int last(int r) { return floored(r + kPhase); }
};

struct Cut {
  Windows windows;
  uint32_t threads;
  FastDiv vectors, columns, rows, depths;  // of a place; groups of results of an image
  FastDiv stride;                          // of depths
  bool packed;                             // a thread's results of a row are one aligned pack
};

// Windows that hold a depth: [begin, end).
__device__ Places windows_holding(const WindowAxis& a, const FastDiv& stride, int depth) {
  const int shifted = depth + a.pad;
  return {shifted < a.kernel ? 0 : static_cast<int>(stride.quotient(shifted - a.kernel)) + 1,
          min(static_cast<int>(stride.quotient(shifted)) + 1, a.y)};
}

// [depths][rows][columns] that a window counts, less one each.
template <int kK>
__device__ void fill_reciprocals(const Windows& p, float* reciprocals) {
  for (int i = static_cast<int>(threadIdx.x); i < p.axes[0].kernel * kK * kK; i += kThreads)
    reciprocals[i] = p.uniform
                         ? p.scale
                         : 1.0f / static_cast<float>((i / (kK * kK) + 1) * (i / kK % kK + 1) * (i % kK + 1));
}

template <class T, int kK, int kS, int kPhase, int kRows, int kCols, int kV>
__global__ void __launch_bounds__(kThreads, kV == 1   ? 4
                                            : kV == 4 ? 3
                                                      : 2)
    tiles_kernel(const __grid_constant__ Cut p, const T* __restrict__ y, T* __restrict__ x) {
  using H = Holding<kK, kS, kPhase>;
  static_assert(kRows % kS == 0 && kCols % kS == 0);
  __shared__ float reciprocals[kMostTileDepths * kK * kK];
  fill_reciprocals<kK>(p.windows, reciprocals);
  __syncthreads();
  uint32_t vector = blockIdx.x * kThreads + threadIdx.x;
  if (vector >= p.threads) return;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  uint32_t depth = p.rows.split(band);
  const int64_t image = p.depths.split(depth);
  const auto& [ad, ah, aw] = p.windows.axes;
  const int step = static_cast<int>(p.vectors.divisor) * kV;  // of a place
  const int h0 = static_cast<int>(band) * kRows, w0 = static_cast<int>(column) * kCols;
  const int oh0 = (h0 + ah.pad - kPhase) / kS, ow0 = (w0 + aw.pad - kPhase) / kS;
  constexpr int kFirst = H::first(0), kLastRow = H::last(kRows - 1), kLastCol = H::last(kCols - 1);
  constexpr int kWide = kLastCol - kFirst + 1;
  int counts[kWide];  // of the columns' windows
#pragma unroll
  for (int c = 0; c < kWide; ++c) counts[c] = count_of(aw, ow0 + kFirst + c) - 1;
  const T* const source = y + image * ad.y * ah.y * aw.y * step + vector * kV;
  float sums[kRows][kCols][kV] = {};
  const Places held = windows_holding(ad, p.stride, static_cast<int>(depth));
  for (int od = held.begin; od < held.end; ++od) {
    const float* const of_depth = reciprocals + (count_of(ad, od) - 1) * kK * kK;
#pragma unroll
    for (int r = kFirst; r <= kLastRow; ++r) {
      const bool live = static_cast<unsigned>(oh0 + r) < static_cast<unsigned>(ah.y);
      const float* const of_row = of_depth + (count_of(ah, oh0 + r) - 1) * kK;
      float row[kWide][kV];
#pragma unroll
      for (int c = 0; c < kWide; ++c) {
        Pack<T, kV> pack{};
        if (live && static_cast<unsigned>(ow0 + kFirst + c) < static_cast<unsigned>(aw.y))
          pack = *reinterpret_cast<const Pack<T, kV>*>(
              source + ((od * ah.y + oh0 + r) * aw.y + ow0 + kFirst + c) * step);
        const float reciprocal = of_row[counts[c]];
#pragma unroll
        for (int v = 0; v < kV; ++v) row[c][v] = to_float(pack.values[v]) * reciprocal;
      }
#pragma unroll
      for (int b = 0; b < kCols; ++b)
#pragma unroll
        for (int v = 0; v < kV; ++v) {
          float across = row[H::first(b) - kFirst][v];
#pragma unroll
          for (int c = H::first(b) + 1; c <= H::last(b); ++c) across += row[c - kFirst][v];
#pragma unroll
          for (int a = 0; a < kRows; ++a)
            if (H::first(a) <= r && r <= H::last(a)) sums[a][b][v] += across;
        }
    }
  }
  T* const target = x + image * ad.x * ah.x * aw.x * step + vector * kV;
#pragma unroll
  for (int a = 0; a < kRows; ++a) {
    if (h0 + a >= ah.x) return;
    T* const out = target + ((static_cast<int>(depth) * ah.x + h0 + a) * aw.x + w0) * step;
    if constexpr (kV == 1) {
      if (p.packed) {
        float results[kCols];
#pragma unroll
        for (int b = 0; b < kCols; ++b) results[b] = sums[a][b][0];
        store_pack<T, kCols>(out, results);
        continue;
      }
    }
#pragma unroll
    for (int b = 0; b < kCols; ++b)
      if (w0 + b < aw.x) store_pack<T, kV>(out + b * step, sums[a][b]);
  }
}

template <class T, int kK, int kS, int kPhase, int kRows, int kCols, int kV>
void launch(const Pool& pool, bool last, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t vectors = last ? pool.channels / kV : 1,
                images = last ? pool.batch : pool.batch * pool.channels;
  const int64_t across = (w.x + kCols - 1) / kCols, down = (h.x + kRows - 1) / kRows;
  Cut p;
  p.windows = windows_of(pool);
  p.threads = static_cast<uint32_t>(images * d.x * down * across * vectors);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(across);
  p.rows = FastDiv(down);
  p.depths = FastDiv(d.x);
  p.stride = FastDiv(d.stride);
  p.packed = !last && w.x % kCols == 0 && is_aligned(pool.x.data, kCols * sizeof(T));
  tiles_kernel<T, kK, kS, kPhase, kRows, kCols, kV>
      <<<(p.threads + kThreads - 1) / kThreads, kThreads, 0, stream>>>(p, static_cast<const T*>(pool.y.data),
                                                                       static_cast<T*>(pool.x.data));
}

template <class T, int kK, int kS, int kPhase, int kV>
void launch_strided(const Pool& pool, bool last, Stream stream) {
  launch<T, kK, kS, kPhase, kV == 1 ? 8 : 2, 2, kV>(pool, last, stream);
}

template <class T, int kV>
void launch_windows(const Pool& pool, bool last, Stream stream) {
  const PoolAxis& w = pool.axes[2];
  if (w.stride == 1) {
    if constexpr (kV > 1) {
      return launch<T, 3, 1, 0, 4, 1, kV>(pool, last, stream);
    } else {  // two results a row are written at once where rows are even
      return w.x % 2 == 0 ? launch<T, 3, 1, 0, 8, 2, 1>(pool, last, stream)
                          : launch<T, 3, 1, 0, 8, 1, 1>(pool, last, stream);
    }
  }
  const bool odd = w.pad % 2 != 0;
  if (w.kernel == 2)
    return odd ? launch_strided<T, 2, 2, 1, kV>(pool, last, stream)
               : launch_strided<T, 2, 2, 0, kV>(pool, last, stream);
  odd ? launch_strided<T, 3, 2, 1, kV>(pool, last, stream)
      : launch_strided<T, 3, 2, 0, kV>(pool, last, stream);
}

}  // namespace

void pool_tiles(const Pool& pool, bool channels_last, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    channels_last ? launch_windows<T, 16 / sizeof(T)>(pool, true, stream)
                  : launch_windows<T, 1>(pool, false, stream);
  });
}

}  // namespace retrograd::kernels::cuda
