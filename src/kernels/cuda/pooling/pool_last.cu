// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor on channels-last tensors, where every window
// divides by the same number. Neighbouring threads take neighbouring vectors of channels.
//   side by side  no padding, windows that do not overlap: a thread writes one window's row.
//   sliding       3x3 windows, stride 1 or 2, padding 1: a thread takes kCols columns and kRows rows and
//   reads
//                 what these need once.
// Bytes: grad_output once, grad_input once.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_last.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

template <class T>
constexpr int kWide = 16 / sizeof(T);

// ---- side by side

struct SideBySide {
  uint32_t threads;
  FastDiv vectors, windows, h, d, sd, sh;  // windows: of a row of x, one that is cut off included
  int sw, xw, yd, yh, yw;
  float scale;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    side_by_side_kernel(const __grid_constant__ SideBySide p, const T* y, T* x) {
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  uint32_t ow = p.vectors.split(vector);
  const uint32_t row = p.windows.quotient(ow);
  ow -= row * p.windows.divisor;
  uint32_t h = row;
  uint32_t d = p.h.split(h);
  const uint32_t image = p.d.split(d);
  const int od = static_cast<int>(p.sd.quotient(d)), oh = static_cast<int>(p.sh.quotient(h));
  const int64_t step = static_cast<int64_t>(p.vectors.divisor) * kWide<T>;  // of a place
  float values[kWide<T>] = {};
  if (od < p.yd && oh < p.yh && static_cast<int>(ow) < p.yw)
    load_pack<T, kWide<T>>(
        y + (((static_cast<int64_t>(image) * p.yd + od) * p.yh + oh) * p.yw + ow) * step + vector * kWide<T>,
        values);
#pragma unroll
  for (float& value : values) value = fmaf(value, p.scale, 0.0f);  // no negative zeros
  T* out = x + (static_cast<int64_t>(row) * p.xw + ow * p.sw) * step + vector * kWide<T>;
  const int count = min(p.sw, p.xw - static_cast<int>(ow) * p.sw);
  for (int i = 0; i < count; ++i) store_pack<T, kWide<T>>(out + i * step, values);
}

template <class T>
void launch_side_by_side(const Pool& pool, float scale, Stream stream) {
  const auto& [d, h, w] = pool.axes;
  const int64_t vectors = pool.channels / kWide<T>, windows = (w.x + w.stride - 1) / w.stride;
  SideBySide p;
  p.threads = static_cast<uint32_t>(pool.batch * d.x * h.x * windows * vectors);
  p.vectors = FastDiv(vectors);
  p.windows = FastDiv(windows);
  p.h = FastDiv(h.x);
  p.d = FastDiv(d.x);
  p.sd = FastDiv(d.stride);
  p.sh = FastDiv(h.stride);
  p.sw = static_cast<int>(w.stride);
  p.xw = static_cast<int>(w.x);
  p.yd = static_cast<int>(d.y);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.scale = scale;
  side_by_side_kernel<T><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
}

// ---- sliding

// Which windows hold the place r, counted from the first window of a tile that starts at a multiple of kS.
template <int kS>
struct Holding {
  __host__ __device__ static constexpr int floored(int a) { return a / kS - (a % kS < 0 ? 1 : 0); }
  __host__ __device__ static constexpr int first(int r) { return floored(r - 2) + 1; }
  __host__ __device__ static constexpr int last(int r) { return floored(r + 1); }
};

struct Sliding {
  uint32_t threads;
  FastDiv vectors, columns, bands;
  int xh, xw, yh, yw;
  float scale;
};

template <class T, int kS, int kRows, int kCols, int kV>
__global__ void __launch_bounds__(kThreads)
    sliding_kernel(const __grid_constant__ Sliding p, const T* __restrict__ y, T* __restrict__ x) {
  using H = Holding<kS>;
  uint32_t vector = thread_number();
  if (vector >= p.threads) return;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  const uint32_t image = p.bands.split(band);
  const int w0 = static_cast<int>(column) * kCols, h0 = static_cast<int>(band) * kRows;
  const int ow = w0 / kS, oh = h0 / kS;
  const int step = static_cast<int>(p.vectors.divisor) * kV;
  constexpr int kFirst = H::first(0), kLastRow = H::last(kRows - 1), kLastCol = H::last(kCols - 1);
  const T* source = y + static_cast<int64_t>(image) * p.yh * p.yw * step + vector * kV;
  T* target = x + static_cast<int64_t>(image) * p.xh * p.xw * step + vector * kV;
  float sums[kRows][kCols][kV] = {};
#pragma unroll
  for (int r = kFirst; r <= kLastRow; ++r) {
    const bool live = static_cast<unsigned>(oh + r) < static_cast<unsigned>(p.yh);
    Pack<T, kV> row[kLastCol - kFirst + 1];
#pragma unroll
    for (int c = kFirst; c <= kLastCol; ++c) {
      row[c - kFirst] = Pack<T, kV>{};
      if (live && static_cast<unsigned>(ow + c) < static_cast<unsigned>(p.yw))
        row[c - kFirst] = *reinterpret_cast<const Pack<T, kV>*>(source + ((oh + r) * p.yw + ow + c) * step);
    }
#pragma unroll
    for (int b = 0; b < kCols; ++b)
#pragma unroll
      for (int v = 0; v < kV; ++v) {
        float across = 0;
#pragma unroll
        for (int c = H::first(b); c <= H::last(b); ++c) across += to_float(row[c - kFirst].values[v]);
#pragma unroll
        for (int a = 0; a < kRows; ++a)
          if (H::first(a) <= r && r <= H::last(a)) sums[a][b][v] += across;
      }
#pragma unroll
    for (int a = 0; a < kRows; ++a) {
      if (H::last(a) != r || h0 + a >= p.xh) continue;
#pragma unroll
      for (int b = 0; b < kCols; ++b) {
        if (w0 + b >= p.xw) continue;
        float results[kV];
#pragma unroll
        for (int v = 0; v < kV; ++v) results[v] = fmaf(sums[a][b][v], p.scale, 0.0f);
        store_pack<T, kV>(target + ((h0 + a) * p.xw + w0 + b) * step, results);
      }
    }
  }
}

template <class T, int kS, int kRows, int kCols, int kV>
void launch_sliding(const Pool& pool, float scale, Stream stream) {
  const PoolAxis &h = pool.axes[1], &w = pool.axes[2];
  const int64_t vectors = pool.channels / kV;
  const int64_t columns = (w.x + kCols - 1) / kCols, bands = (h.x + kRows - 1) / kRows;
  Sliding p;
  p.threads = static_cast<uint32_t>(pool.batch * vectors * columns * bands);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(columns);
  p.bands = FastDiv(bands);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.scale = scale;
  sliding_kernel<T, kS, kRows, kCols, kV><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.y.data), static_cast<T*>(pool.x.data));
}

}  // namespace

void pool_last_side_by_side(const Pool& pool, float scale, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { launch_side_by_side<decltype(type)>(pool, scale, stream); });
}

void pool_last_sliding(const Pool& pool, float scale, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    pool.axes[2].stride == 2 ? launch_sliding<T, 2, 2, 2, kWide<T>>(pool, scale, stream)
                             : launch_sliding<T, 1, sizeof(T) == 2 ? 5 : 4, 2, kWide<T>>(pool, scale, stream);
  });
}

}  // namespace retrograd::kernels::cuda
