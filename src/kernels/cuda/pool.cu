// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p), gathered: each result is written once.
//
// Bytes: grad_output once, grad_input once. All kernels are limited by index arithmetic before they are by
// memory, so: FastDiv, several results a thread, kernel and stride known to the compiler where they are
// common.
//   disjoint   windows side by side, no padding, every window full: a result is one quotient.
//   sliding    3x3 windows, stride 1 or 2, padding 1: a thread takes a few columns and eight rows; each sum
//   of
//              a row is used by all results that need it.
//   anything   a thread a result, windows as they come.
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/pool_last.h"
#include "kernels/cuda/pool_staged.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }
__device__ uint32_t thread_number() { return blockIdx.x * kThreads + threadIdx.x; }

bool is_aligned(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// ---- disjoint windows

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
      const float first = window(at), second = kCount > 1 ? window(at + 1) : 0.0f;
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
  long_row_kernel<T, kCount>
      <<<blocks_for((p.vectors + kLongEach - 1) / kLongEach), kThreads, 0, stream>>>(p, y, x);
}

// Axes along which one window covers everything count as one; rows that are tiled exactly as one long row.
void merge(PoolAxis (&a)[3], int64_t& planes) {
  const auto whole = [](const PoolAxis& axis) { return axis.y == 1 && axis.kernel == axis.x; };
  for (int i = 1; i >= 0; --i)
    if (whole(a[i]) && whole(a[2])) {
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
  const unsigned blocks = blocks_for(p.threads);
  if (p.yw % kWindows == 0 && is_aligned(y, kWindows * sizeof(T)))
    return disjoint_kernel<T, kCount, kStride, true><<<blocks, kThreads, 0, stream>>>(p, y, x);
  disjoint_kernel<T, kCount, kStride, false><<<blocks, kThreads, 0, stream>>>(p, y, x);
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
  if constexpr (kCount > 1) {
    if (a[2].stride == 2) return launch_stride<T, kCount, 2>(p, y, x, stream);
    if (a[2].stride == 4) return launch_stride<T, kCount, 4>(p, y, x, stream);
  }
  if (planes * a[0].x * a[1].x == 1 && a[2].stride >= kCount && a[2].x == a[2].y * a[2].stride)
    return launch_long_row<T, kCount>(a[2], scale, y, x, stream);
  launch_stride<T, kCount, 0>(p, y, x, stream);
}

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
      p, static_cast<const T*>(pool.grad_output.data), static_cast<T*>(pool.grad_input.data));
}

// ---- any windows

struct AnyAxis {
  int x, y, kernel, pad, end;  // end: of what a window counts
  int begin;                   // the same for its start
  FastDiv stride;
};

struct Any {
  uint32_t threads;
  FastDiv w, h, d, vectors;
  AnyAxis axes[3];
  bool uniform;
  float scale;
};

struct Held {
  int begin, end;
};
__device__ Held windows_holding(const AnyAxis& a, uint32_t index) {
  const int shifted = static_cast<int>(index) + a.pad;
  const int begin = shifted < a.kernel ? 0 : static_cast<int>(a.stride.quotient(shifted - a.kernel)) + 1;
  return {begin, min(static_cast<int>(a.stride.quotient(shifted)) + 1, a.y)};
}
__device__ float count_of(const AnyAxis& a, int window) {
  const int start = window * static_cast<int>(a.stride.divisor) - a.pad;
  return static_cast<float>(min(start + a.kernel, a.end) - max(start, a.begin));
}

// kCount neighbouring channels of a channels-last tensor; 1 with vectors = 1 walks a row-major one.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) any_kernel(Any p, const T* y, T* x) {
  uint32_t rest = thread_number();
  if (rest >= p.threads) return;
  const int64_t target = static_cast<int64_t>(rest) * kCount;
  uint32_t w = p.vectors.split(rest);
  const uint32_t vector = rest;
  uint32_t h = p.w.split(w);
  uint32_t d = p.h.split(h);
  const uint32_t plane = p.d.split(d);
  const auto& [ad, ah, aw] = p.axes;
  const Held rd = windows_holding(ad, d), rh = windows_holding(ah, h), rw = windows_holding(aw, w);
  const int64_t step = static_cast<int64_t>(p.vectors.divisor) * kCount;  // of a place
  const T* source = y + static_cast<int64_t>(plane) * ad.y * ah.y * aw.y * step + vector * kCount;
  float sums[kCount] = {};
  for (int od = rd.begin; od < rd.end; ++od)
    for (int oh = rh.begin; oh < rh.end; ++oh)
      for (int ow = rw.begin; ow < rw.end; ++ow) {
        float values[kCount];
        load_pack<T, kCount>(source + ((static_cast<int64_t>(od) * ah.y + oh) * aw.y + ow) * step, values);
        const float divisor = p.uniform ? 1.0f : count_of(ad, od) * count_of(ah, oh) * count_of(aw, ow);
#pragma unroll
        for (int i = 0; i < kCount; ++i) sums[i] += p.uniform ? values[i] : values[i] / divisor;
      }
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = fmaf(sums[i], p.scale, 0.0f);
  store_pack<T, kCount>(x + target, sums);
}

template <class T, int kCount>
void launch_any(const Pool& pool, int64_t planes, int64_t vectors, bool uniform, float scale, Stream stream) {
  Any p;
  p.threads = static_cast<uint32_t>(planes * pool.axes[0].x * pool.axes[1].x * pool.axes[2].x * vectors);
  p.vectors = FastDiv(vectors);
  p.w = FastDiv(pool.axes[2].x);
  p.h = FastDiv(pool.axes[1].x);
  p.d = FastDiv(pool.axes[0].x);
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& a = pool.axes[i];
    p.axes[i] = {static_cast<int>(a.x),
                 static_cast<int>(a.y),
                 static_cast<int>(a.kernel),
                 static_cast<int>(a.pad),
                 static_cast<int>(pool.count_include_pad ? a.x + a.pad : a.x),
                 pool.count_include_pad ? -static_cast<int>(a.pad) : 0,
                 FastDiv(a.stride)};
  }
  p.uniform = uniform;
  p.scale = scale;
  any_kernel<T, kCount><<<blocks_for(p.threads), kThreads, 0, stream>>>(
      p, static_cast<const T*>(pool.grad_output.data), static_cast<T*>(pool.grad_input.data));
}

// ---- which

// Whether every window divides by the same number, and what to multiply with then.
struct Divisor {
  bool uniform;
  float scale;
};
Divisor divisor_of(const Pool& pool) {
  if (pool.divisor_override != 0) return {true, 1.0f / static_cast<float>(pool.divisor_override)};
  double count = 1;
  for (const PoolAxis& a : pool.axes) {
    const bool unpadded = a.pad == 0 || pool.count_include_pad;
    if (!unpadded || (a.y - 1) * a.stride - a.pad + a.kernel > a.x + a.pad) return {false, 1.0f};
    count *= static_cast<double>(a.kernel);
  }
  return {true, static_cast<float>(1.0 / count)};
}

bool is_disjoint(const Pool& pool) {
  for (const PoolAxis& a : pool.axes)
    if (a.pad != 0 || a.kernel != a.stride || a.y * a.stride > a.x + a.stride - 1) return false;
  return true;
}

bool is_sliding(const Pool& pool) {
  const auto& [d, h, w] = pool.axes;
  const auto three = [](const PoolAxis& a) { return a.kernel == 3 && a.pad == 1 && a.stride <= 2; };
  return d.kernel == 1 && d.stride == 1 && d.pad == 0 && three(h) && three(w) && h.stride == w.stride;
}

template <class T>
void run_planes(const Pool& pool, Stream stream) {
  const Divisor divisor = divisor_of(pool);
  const int64_t planes = pool.batch * pool.channels;
  const auto* y = static_cast<const T*>(pool.grad_output.data);
  auto* x = static_cast<T*>(pool.grad_input.data);
  constexpr int kWide = 16 / sizeof(T);
  if (divisor.uniform && is_disjoint(pool)) {
    PoolAxis axes[3] = {pool.axes[0], pool.axes[1], pool.axes[2]};
    int64_t rows = planes;
    merge(axes, rows);
    if (axes[2].x % kWide == 0 && is_aligned(x, 16))
      return launch_disjoint<T, kWide>(axes, rows, divisor.scale, y, x, stream);
    return launch_disjoint<T, 1>(axes, rows, divisor.scale, y, x, stream);
  }
  if (divisor.uniform && is_sliding(pool)) {
    const bool narrow = pool.axes[2].x % 2 != 0 || sizeof(T) == 2;
    if (pool.axes[2].stride == 1 && narrow && pool_staged_fits(pool))
      return pool_staged(pool, divisor.scale, stream);
    const bool even = pool.axes[2].x % 2 == 0 && is_aligned(x, 2 * sizeof(T));
    if (pool.axes[2].stride == 2)
      return even ? launch_sliding<T, 2, 2, true>(pool, divisor.scale, stream)
                  : launch_sliding<T, 2, 2, false>(pool, divisor.scale, stream);
    return even ? launch_sliding<T, 1, 2, true>(pool, divisor.scale, stream)
                : launch_sliding<T, 1, 1, false>(pool, divisor.scale, stream);
  }
  launch_any<T, 1>(pool, planes, 1, divisor.uniform, divisor.scale, stream);
}

template <class T>
void run_channels_last(const Pool& pool, Stream stream) {
  const Divisor divisor = divisor_of(pool);
  constexpr int kWide = 16 / sizeof(T);
  if (pool.channels % kWide == 0 && is_aligned(pool.grad_input.data, 16) &&
      is_aligned(pool.grad_output.data, 16)) {
    if (divisor.uniform && is_disjoint(pool)) return pool_last_side_by_side(pool, divisor.scale, stream);
    if (divisor.uniform && is_sliding(pool) && pool.axes[0].x == 1)
      return pool_last_sliding(pool, divisor.scale, stream);
    return launch_any<T, kWide>(pool, pool.batch, pool.channels / kWide, divisor.uniform, divisor.scale,
                                stream);
  }
  launch_any<T, 1>(pool, pool.batch, pool.channels, divisor.uniform, divisor.scale, stream);
}

}  // namespace

void pool_planes(const Pool& pool, Stream stream) {
  with_type(pool.grad_input.dtype, [&](auto type) { run_planes<decltype(type)>(pool, stream); });
}

void pool_channels_last(const Pool& pool, Stream stream) {
  with_type(pool.grad_input.dtype, [&](auto type) { run_channels_last<decltype(type)>(pool, stream); });
}

}  // namespace retrograd::kernels::cuda
