// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, S·o − P + (kh,kw)] · y[n, o] of one channel.
//
// A block takes one channel and a part of the images. A thread keeps kCols columns of y and all K² sums, and
// walks down rows of x, read in packs: a row of x meets the last K rows of its columns of y. At the end the
// block adds the sums of its threads, and a second kernel the parts, both in a fixed order. Bytes: x once, y
// once.
//
// Values beyond the edge count as zero, and zero times what is not finite is NaN: a sum that is not finite is
// taken from the formula.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise.h"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBandRows = 32;  // of y that a thread walks at a time

struct Planes {
  int channels, images, images_in_part;
  int width;   // threads of a row of y, at most kThreads
  int groups;  // rows that the block walks at once
  int bands;   // of a plane
  int xh, xw, yh, yw;
};

__host__ __device__ constexpr int floor_div(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }

// kCols columns from `column` on; zeros where the row or the pack is not there.
template <class T, int kCols>
__device__ void load_columns(const T* plane, int row, int height, int column, int width,
                             float (&values)[kCols]) {
  if (static_cast<unsigned>(row) < static_cast<unsigned>(height) &&
      static_cast<unsigned>(column) < static_cast<unsigned>(width)) {
    load_pack<T, kCols>(plane + static_cast<int64_t>(row) * width + column, values);
  } else {
#pragma unroll
    for (int j = 0; j < kCols; ++j) values[j] = 0.0f;
  }
}

template <class T, int kK, int kCols>
__device__ void walk(const T* x, const T* y, const Planes& p, int column, int o_begin, int o_end,
                     float (&sums)[kK][kK]) {
  constexpr int kP = kK / 2, kAhead = kK == 3 ? 2 : 1;  // rows read before the first is used
  constexpr int kBegin = floor_div(-kP, kCols), kEnd = floor_div(kCols - 1 + kK - 1 - kP, kCols) + 1;
  float ring[kK][kCols] = {};  // y of rows i + P − kh
  for (int i0 = o_begin - kP; i0 < o_end + kK - 1 - kP; i0 += kAhead) {
    float rows[kAhead][kEnd - kBegin][kCols], newest[kAhead][kCols];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
#pragma unroll
      for (int b = kBegin; b < kEnd; ++b)
        load_columns<T, kCols>(x, i0 + u, p.xh, column + b * kCols, p.xw, rows[u][b - kBegin]);
      load_columns<T, kCols>(y, i0 + u + kP, o_end, column, p.yw, newest[u]);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
#pragma unroll
      for (int kh = kK - 1; kh > 0; --kh)
#pragma unroll
        for (int j = 0; j < kCols; ++j) ring[kh][j] = ring[kh - 1][j];
#pragma unroll
      for (int j = 0; j < kCols; ++j) ring[0][j] = newest[u][j];
#pragma unroll
      for (int kh = 0; kh < kK; ++kh)
#pragma unroll
        for (int kw = 0; kw < kK; ++kw)
#pragma unroll
          for (int j = 0; j < kCols; ++j) {
            const int at = j + kw - kP - kBegin * kCols;
            sums[kh][kw] = fmaf(rows[u][at / kCols][at % kCols], ring[kh][j], sums[kh][kw]);
          }
    }
  }
}

template <class T, int kK, int kS>
__device__ void walk_strided(const T* x, const T* y, const Planes& p, int column, int o_begin, int o_end,
                             float (&sums)[kK][kK]) {
  constexpr int kP = kK / 2;
  const int x0 = column * kS - kP;
#pragma unroll 2
  for (int o = o_begin; o < o_end; ++o) {
    const float value = to_float(y[static_cast<int64_t>(o) * p.yw + column]);
    float rows[kK][kK];
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      const int i = o * kS - kP + kh;
      const bool live = static_cast<unsigned>(i) < static_cast<unsigned>(p.xh);
      const T* at = x + static_cast<int64_t>(i) * p.xw + x0;
#pragma unroll
      for (int kw = 0; kw < kK; ++kw)
        rows[kh][kw] =
            live && static_cast<unsigned>(x0 + kw) < static_cast<unsigned>(p.xw) ? to_float(at[kw]) : 0.0f;
    }
#pragma unroll
    for (int kh = 0; kh < kK; ++kh)
#pragma unroll
      for (int kw = 0; kw < kK; ++kw) sums[kh][kw] = fmaf(rows[kh][kw], value, sums[kh][kw]);
  }
}

template <class T, int kK, int kS, int kCols>
__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(Planes p, const T* x, const T* y, float* parts) {
  constexpr int kTaps = kK * kK;
  const int channel = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int column =
      (static_cast<int>(blockIdx.z) * p.width + static_cast<int>(threadIdx.x) % p.width) * kCols;
  const int group = static_cast<int>(threadIdx.x) / p.width;
  const int first = part * p.images_in_part, last = min(first + p.images_in_part, p.images);
  float sums[kK][kK] = {};
  if (group < p.groups && column < p.yw) {
    for (int item = group; item < (last - first) * p.bands; item += p.groups) {
      const int64_t plane = static_cast<int64_t>(first + item / p.bands) * p.channels + channel;
      const int o_begin = item % p.bands * kBandRows, o_end = min(o_begin + kBandRows, p.yh);
      const T* of_x = x + plane * p.xh * p.xw;
      const T* of_y = y + plane * p.yh * p.yw;
      if constexpr (kS == 1) {
        walk<T, kK, kCols>(of_x, of_y, p, column, o_begin, o_end, sums);
      } else {
        walk_strided<T, kK, kS>(of_x, of_y, p, column, o_begin, o_end, sums);
      }
    }
  }
  __shared__ float of_warps[kThreads / 32][kTaps];
#pragma unroll
  for (int kh = 0; kh < kK; ++kh)
#pragma unroll
    for (int kw = 0; kw < kK; ++kw) {
      const float sum = warp_sum(sums[kh][kw]);
      if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][kh * kK + kw] = sum;
    }
  __syncthreads();
  if (threadIdx.x >= kTaps) return;
  float sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += of_warps[i][threadIdx.x];
  const int64_t slot = static_cast<int64_t>(part) * gridDim.z + blockIdx.z;
  parts[(slot * p.channels + channel) * kTaps + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(Conv conv, int64_t weights, int64_t parts, int kernel, const float* sums) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= weights) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[part * weights + i];
  const Index5 at{i / kernel / kernel, 0, 0, i / kernel % kernel, i % kernel};
  if (!isfinite(sum)) sum = grad_weight_sum(conv, at, 0, 1);
  store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
}

// Columns a thread keeps. The addresses are not known yet where parts are counted, so this is the most it can
// be.
int most_columns(const Conv& conv) {
  const int64_t width = conv.axes[2].y;
  if (conv.axes[2].stride != 1 || conv.axes[2].x % 2 != 0 || width % 2 != 0) return 1;
  return conv.axes[2].x % 4 == 0 && width % 4 == 0 ? 4 : 2;
}
int64_t column_tiles(const Conv& conv, int columns) {
  return (conv.axes[2].y / columns + kThreads - 1) / kThreads;
}

// So that there are enough blocks, and each has enough rows to make up for its final sums.
int64_t image_parts(const Conv& conv) {
  const int64_t tiles = column_tiles(conv, most_columns(conv));
  const int64_t wanted = (1056 + conv.groups * tiles - 1) / (conv.groups * tiles);
  const int64_t most = conv.batch * conv.axes[1].y * conv.axes[2].y / (kThreads * 64);
  int64_t parts = wanted < most ? wanted : most;
  if (parts > conv.batch) parts = conv.batch;
  return parts < 1 ? 1 : parts;
}

template <class T, int kK, int kS, int kCols>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int64_t parts = image_parts(conv), tiles = column_tiles(conv, kCols);
  Planes p;
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  p.images_in_part = static_cast<int>((conv.batch + parts - 1) / parts);
  p.width = static_cast<int>((w.y / kCols + tiles - 1) / tiles);
  p.groups = kThreads / p.width;
  p.bands = static_cast<int>((h.y + kBandRows - 1) / kBandRows);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  const dim3 grid(static_cast<unsigned>(conv.groups), static_cast<unsigned>(parts),
                  static_cast<unsigned>(tiles));
  grad_weight_kernel<T, kK, kS, kCols><<<grid, kThreads, 0, stream>>>(
      p, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
  const int64_t weights = conv.groups * kK * kK;
  finish_kernel<<<static_cast<unsigned>((weights + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      conv, weights, parts * tiles, kK, workspace);
}

template <class T, int kK>
void launch_stride(const Conv& conv, float* workspace, Stream stream) {
  if (conv.axes[2].stride != 1) return launch<T, kK, 2, 1>(conv, workspace, stream);
  const auto aligned = [&](int columns) {
    const size_t bytes = static_cast<size_t>(columns) * sizeof(T);
    return most_columns(conv) >= columns && reinterpret_cast<uintptr_t>(conv.x.data) % bytes == 0 &&
           reinterpret_cast<uintptr_t>(conv.y.data) % bytes == 0;
  };
  if (aligned(4)) return launch<T, kK, 1, 4>(conv, workspace, stream);
  if (aligned(2)) return launch<T, kK, 1, 2>(conv, workspace, stream);
  launch<T, kK, 1, 1>(conv, workspace, stream);
}

}  // namespace

int64_t depthwise_parts(const Conv& conv) { return image_parts(conv) * column_tiles(conv, 1); }

void depthwise_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    switch (conv.axes[2].kernel) {
      case 3:
        return launch_stride<T, 3>(conv, workspace, stream);
      case 5:
        return launch_stride<T, 5>(conv, workspace, stream);
      default:
        return launch_stride<T, 7>(conv, workspace, stream);
    }
  });
}

}  // namespace retrograd::kernels::cuda
