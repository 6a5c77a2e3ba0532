// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = scale · Σ grad_output of the windows that hold q, 3x3 windows with padding 1 on row-major
// planes. A thread takes one or two columns and eight rows; each sum of a row is used by all results that
// need it. Bytes: grad_output once, grad_input once.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_sliding.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

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

}  // namespace

void pool_sliding(const Pool& pool, float scale, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) {
    using T = decltype(type);
    const bool even = pool.axes[2].x % 2 == 0 && is_aligned(pool.x.data, 2 * sizeof(T));
    if (pool.axes[2].stride == 2)
      return even ? launch_sliding<T, 2, 2, true>(pool, scale, stream)
                  : launch_sliding<T, 2, 2, false>(pool, scale, stream);
    return even ? launch_sliding<T, 1, 2, true>(pool, scale, stream)
                : launch_sliding<T, 1, 1, false>(pool, scale, stream);
  });
}

}  // namespace retrograd::kernels::cuda
