// SPDX-License-Identifier: Apache-2.0
// A result is one quotient: vectors of results, the quotients of a window read once for all its layers.
#include "base/checked.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pooling/pool_kernels.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

struct Disjoint {
  uint32_t threads;
  FastDiv vectors, bands, depths,
      sw;             // vectors: of a row; bands of rows; layers of windows, cut off ones too
  FastDiv in_window;  // bands of a window
  int sd, rows, xd, xh, xw, yd, yh, yw;  // rows: of a band
  float scale;
};

// A thread takes kCount columns of a band of rows, in all layers that its windows cover. kStride 0: known at
// run time; else kPacked: rows of y are whole and aligned packs of kCount / kStride.
template <class T, int kCount, int kStride, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    disjoint_kernel(const __grid_constant__ Disjoint p, const T* y, T* x) {
  uint32_t column = thread_number();
  if (column >= p.threads) return;
  uint32_t band = p.vectors.split(column);
  uint32_t depth = p.bands.split(band);
  const uint32_t plane = p.depths.split(depth);
  const int od = static_cast<int>(depth), oh = static_cast<int>(p.in_window.quotient(band));
  float values[kCount];
  const bool live = od < p.yd && oh < p.yh;
  const T* row = y + ((static_cast<int64_t>(plane) * p.yd + od) * p.yh + oh) * p.yw;
  column *= kCount;
  if constexpr (kStride > 0) {
    static_assert(kCount % kStride == 0);
    constexpr int kWindows = kCount / kStride;
    const int first = static_cast<int>(column / kStride);
    Pack<T, kWindows> windows{};
    if constexpr (kPacked) {
      if (live && first < p.yw) windows = *reinterpret_cast<const Pack<T, kWindows>*>(row + first);
    } else {
#pragma unroll
      for (int i = 0; i < kWindows; ++i)
        if (live && first + i < p.yw) windows.values[i] = row[first + i];
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = fmaf(to_float(windows.values[i / kStride]), p.scale, 0.0f);
  } else {
    uint32_t within = column;
    int at = static_cast<int>(p.sw.split(within));
    const auto window = [&](int i) {
      return live && i < p.yw ? fmaf(to_float(row[i]), p.scale, 0.0f) : 0.0f;
    };
    if (p.sw.divisor >= kCount) {  // two windows at most, without waiting for the first
      const float first = window(at), second = window(at + 1);
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) values[i] = within + i < p.sw.divisor ? first : second;
    } else {
      float value = window(at);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (within == p.sw.divisor) {
          within = 0;
          value = window(++at);
        }
        values[i] = value;
        ++within;
      }
    }
  }
  const int h0 = static_cast<int>(band) * p.rows, rows = min(p.rows, p.xh - h0);
  const int d0 = od * p.sd, layers = min(p.sd, p.xd - d0);
  T* out = x + ((static_cast<int64_t>(plane) * p.xd + d0) * p.xh + h0) * p.xw + column;
  for (int d = 0; d < layers; ++d, out += static_cast<int64_t>(p.xh) * p.xw)
    for (int r = 0; r < rows; ++r) store_pack<T, kCount>(out + static_cast<int64_t>(r) * p.xw, values);
}

// One long row of windows of kCount elements or more: a thread takes a few vectors, whose loads are under way
// together.
struct LongRow {
  uint32_t vectors, windows;
  FastDiv stride;
  float scale;
};

constexpr int kLongEach = 4;

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    long_row_kernel(const __grid_constant__ LongRow p, const T* __restrict__ y, T* __restrict__ x) {
  uint32_t within[kLongEach];
  T two[kLongEach][2];
#pragma unroll
  for (int j = 0; j < kLongEach; ++j) {
    const uint32_t number = (blockIdx.x * kLongEach + j) * kThreads + threadIdx.x;
    within[j] = min(number, p.vectors - 1) * kCount;
    const uint32_t window = p.stride.split(within[j]);
    two[j][0] = y[window];
    two[j][1] = y[min(window + 1, p.windows - 1)];
  }
#pragma unroll
  for (int j = 0; j < kLongEach; ++j) {
    const uint32_t number = (blockIdx.x * kLongEach + j) * kThreads + threadIdx.x;
    if (number >= p.vectors) return;
    const float first = fmaf(to_float(two[j][0]), p.scale, 0.0f),
                second = fmaf(to_float(two[j][1]), p.scale, 0.0f);
    float values[kCount];
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) values[i] = within[j] + i < p.stride.divisor ? first : second;
    store_pack<T, kCount>(x + static_cast<int64_t>(number) * kCount, values);
  }
}

template <class T, int kCount>
void launch_long_row(const PoolAxis& w, float scale, const T* y, T* x, Stream stream) {
  LongRow p;
  p.vectors = static_cast<uint32_t>(w.x / kCount);
  p.windows = static_cast<uint32_t>(w.y);
  p.stride = FastDiv(w.stride);
  p.scale = scale;
  start(long_row_kernel<T, kCount>, ceil_div(ceil_div(p.vectors, kLongEach), kThreads), kThreads, 0, stream,
        p, y, x);
}

// Neighbouring axes along which one window covers everything count as one; rows that are tiled exactly as one
// long row.
void merge(PoolAxis (&a)[3], int64_t& planes) {
  const auto whole = [](const PoolAxis& axis) { return axis.y == 1 && axis.kernel == axis.x; };
  for (int i = 1; i >= 0 && whole(a[i]) && whole(a[2]); --i) {
    a[2].x *= a[i].x;
    a[2].kernel = a[2].stride = a[2].x;
    a[i] = {1, 1, 1, 1, 0};
  }
  const auto untouched = [](const PoolAxis& axis) { return axis.kernel == 1 && axis.stride == 1; };
  if (!untouched(a[0]) || !untouched(a[1]) || a[2].x != a[2].y * a[2].stride) return;
  const int64_t rows = planes * a[0].x * a[1].x;
  a[0] = a[1] = {1, 1, 1, 1, 0};
  a[2].x *= rows;
  a[2].y *= rows;
  planes = 1;
}

template <class T, int kCount, int kStride>
void launch_stride(const Disjoint& p, const T* y, T* x, Stream stream) {
  constexpr int kWindows = kStride > 0 ? kCount / kStride : 1;
  const int64_t blocks = ceil_div(p.threads, kThreads);
  if (p.yw % kWindows == 0 && is_aligned(y, kWindows * sizeof(T)))
    return start(disjoint_kernel<T, kCount, kStride, true>, blocks, kThreads, 0, stream, p, y, x);
  start(disjoint_kernel<T, kCount, kStride, false>, blocks, kThreads, 0, stream, p, y, x);
}

template <class T, int kCount>
void launch_disjoint(const PoolAxis (&a)[3], int64_t planes, float scale, const T* y, T* x, Stream stream) {
  // A band is a row of windows. Where rows end within a sector of 32 bytes, it is one row: what a warp writes
  // at once lies side by side then.
  const int64_t rows = a[2].x * static_cast<int64_t>(sizeof(T)) % 32 == 0 ? a[1].stride : 1;
  const int64_t vectors = a[2].x / kCount, bands = (a[1].x + rows - 1) / rows,
                depths = (a[0].x + a[0].stride - 1) / a[0].stride;
  Disjoint p;
  p.rows = static_cast<int>(rows);
  p.in_window = FastDiv(a[1].stride / rows);
  p.threads = static_cast<uint32_t>(planes * depths * bands * vectors);
  p.vectors = FastDiv(vectors);
  p.bands = FastDiv(bands);
  p.depths = FastDiv(depths);
  p.sd = static_cast<int>(a[0].stride);
  p.xd = static_cast<int>(a[0].x);
  p.sw = FastDiv(a[2].stride);
  p.xh = static_cast<int>(a[1].x);
  p.xw = static_cast<int>(a[2].x);
  p.yd = static_cast<int>(a[0].y);
  p.yh = static_cast<int>(a[1].y);
  p.yw = static_cast<int>(a[2].y);
  p.scale = scale;
  if (a[2].stride == 2) return launch_stride<T, kCount, 2>(p, y, x, stream);
  if (a[2].stride == 4) return launch_stride<T, kCount, 4>(p, y, x, stream);
  if (planes * a[0].x * a[1].x == 1 && a[2].stride >= kCount && a[2].x == a[2].y * a[2].stride)
    return launch_long_row<T, kCount>(a[2], scale, y, x, stream);
  launch_stride<T, kCount, 0>(p, y, x, stream);
}

template <class T>
void run(const Pool& pool, float scale, Stream stream) {
  const auto* y = static_cast<const T*>(pool.y.data);
  auto* x = static_cast<T*>(pool.x.data);
  constexpr int kWide = 16 / sizeof(T);
  PoolAxis axes[3] = {pool.axes[0], pool.axes[1], pool.axes[2]};
  int64_t rows = pool.batch * pool.channels;
  merge(axes, rows);
  launch_disjoint<T, kWide>(axes, rows, scale, y, x, stream);
}

}  // namespace

void pool_disjoint(const Pool& pool, float scale, Stream stream) {
  with_type(pool.x.dtype, [&](auto type) { run<decltype(type)>(pool, scale, stream); });
}

}  // namespace retrograd::kernels::cuda
