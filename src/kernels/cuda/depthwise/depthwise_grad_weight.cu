// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, S·o − P + (kh,kw)] · y[n, o] of one channel.
//
// A block takes one channel and a part of the images. A thread keeps kCols columns of y and all K² sums, and
// walks down rows of x, read in packs: a row of x meets the last K rows of its columns of y. At the end the
// block adds the sums of its threads, and a second kernel the parts, both in a fixed order. Bytes: x once, y
// once. Columns are known to the compiler for a padding of kP, half a kernel or one more; every other padding
// is such a one with x moved.
//
// Values beyond the edge count as zero; who adds the parts takes a sum that is NaN from the formula.
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise/depthwise.h"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_row.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = kDepthwiseThreads;

struct Planes {
  int channels, items, items_in_part;  // an item: a band of an image
  int width;                           // threads of a row of y, at most kThreads
  int groups;                          // rows that the block walks at once
  int bands, band_rows;                // of a plane
  int xh, xw, yh, yw;
  int pad_h, pad_w;
};

template <class T, int kK, int kP, int kCols>
__device__ void walk(const T* x, const T* y, const Planes& p, int column, int o_begin, int o_end,
                     float (&sums)[kK][kK]) {
  float ring[kK][kCols] = {};  // y of rows i + P − kh
  RowPiece<T, kP, kCols, kK - 1 - kP> next_x;
  RowPiece<T, 0, kCols, 0> next_y;
  const auto load = [&](int i) {
    next_x.load(x, i, static_cast<unsigned>(i) < static_cast<unsigned>(p.xh), column + kP - p.pad_w, p.xw);
    next_y.load(y, i + p.pad_h, i + p.pad_h < o_end, column, p.yw);
  };
  const int end = o_end + kK - 1 - p.pad_h;
  load(o_begin - p.pad_h);
  for (int i = o_begin - p.pad_h; i < end; ++i) {
    float row[kCols + kK - 1];
#pragma unroll
    for (int kh = kK - 1; kh > 0; --kh)
#pragma unroll
      for (int j = 0; j < kCols; ++j) ring[kh][j] = ring[kh - 1][j];
    next_x.expand(row);
    next_y.expand(ring[0]);
    if (i + 1 < end) load(i + 1);
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      // Rows of y outside the band are zeros; many products are worth a branch.
      const int o = i + p.pad_h - kh;
      if (kK > 3 && (o < o_begin || o >= o_end)) continue;
#pragma unroll
      for (int j = 0; j < kCols; ++j)  // in this order neighbouring products go to different sums
#pragma unroll
        for (int kw = 0; kw < kK; ++kw) sums[kh][kw] = fmaf(row[j + kw], ring[kh][j], sums[kh][kw]);
    }
  }
}

// kPacked: rows of x are whole and aligned packs of kCols·S.
template <class T, int kK, int kS, int kCols, bool kPacked>
__device__ void walk_strided(const T* x, const T* y, const Planes& p, int column, int o_begin, int o_end,
                             float (&sums)[kK][kK]) {
  constexpr int kP = kK / 2, kRight = kK - kS - kP, kWide = (kCols - 1) * kS + kK;
  const int x0 = column * kS;
  for (int o = o_begin; o < o_end; ++o) {
    float values[kCols], rows[kK][kWide];
    load_row<T, 0, kCols, 0>(y, o, true, column, p.yw, values);
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      const int i = o * kS - p.pad_h + kh;
      const bool live = static_cast<unsigned>(i) < static_cast<unsigned>(p.xh);
      if constexpr (kPacked) {
        load_row<T, kP, kCols * kS, kRight>(x, i, live, x0 + kP - p.pad_w, p.xw, rows[kh]);
      } else {
        const T* at = x + static_cast<int64_t>(i) * p.xw + x0 - p.pad_w;
#pragma unroll
        for (int c = 0; c < kWide; ++c)
          rows[kh][c] = live && static_cast<unsigned>(x0 - p.pad_w + c) < static_cast<unsigned>(p.xw)
                            ? to_float(at[c])
                            : 0.0f;
      }
    }
#pragma unroll
    for (int kh = 0; kh < kK; ++kh)
#pragma unroll
      for (int kw = 0; kw < kK; ++kw)
#pragma unroll
        for (int j = 0; j < kCols; ++j) sums[kh][kw] = fmaf(rows[kh][j * kS + kw], values[j], sums[kh][kw]);
  }
}

template <class T, int kK, int kS, int kP, int kCols, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(Planes p, const T* x, const T* y, float* parts) {
  constexpr int kTaps = kK * kK;
  const int channel = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int column =
      (static_cast<int>(blockIdx.z) * p.width + static_cast<int>(threadIdx.x) % p.width) * kCols;
  const int group = static_cast<int>(threadIdx.x) / p.width;
  const int last = min((part + 1) * p.items_in_part, p.items);
  float sums[kK][kK] = {};
  if (group < p.groups && column < p.yw) {
    for (int item = part * p.items_in_part + group; item < last; item += p.groups) {
      const int64_t plane = static_cast<int64_t>(item / p.bands) * p.channels + channel;
      const int o_begin = item % p.bands * p.band_rows, o_end = min(o_begin + p.band_rows, p.yh);
      const T* of_x = x + plane * p.xh * p.xw;
      const T* of_y = y + plane * p.yh * p.yw;
      if constexpr (kS == 1) {
        walk<T, kK, kP, kCols>(of_x, of_y, p, column, o_begin, o_end, sums);
      } else {
        walk_strided<T, kK, kS, kCols, kPacked>(of_x, of_y, p, column, o_begin, o_end, sums);
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

template <class T, int kK, int kS, int kP, int kCols, bool kPacked>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const DepthwiseCut c = depthwise_cut(conv, kCols);
  Planes p;
  p.channels = static_cast<int>(conv.groups);
  p.items = static_cast<int>(conv.batch * c.bands);
  p.items_in_part = static_cast<int>(c.items_in_part);
  p.width = static_cast<int>(c.width);
  p.groups = static_cast<int>(c.groups);
  p.bands = static_cast<int>(c.bands);
  p.band_rows = static_cast<int>(c.band_rows);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.pad_h = static_cast<int>(h.pad);
  p.pad_w = static_cast<int>(w.pad);
  start(grad_weight_kernel<T, kK, kS, kP, kCols, kPacked>, {conv.groups, c.parts, c.tiles}, kThreads, 0,
        stream, p, conv.x.data, conv.y.data, workspace);
  add_parts(conv, c.parts * c.tiles, PartOrder::kTapsOfChannel,
            {c.items_in_part, c.bands, c.band_rows, c.tiles, h.y}, workspace, stream);
}

template <class T, int kK>
void launch_stride(const Conv& conv, float* workspace, Stream stream) {
  constexpr int kWide = 16 / sizeof(T);
  constexpr int kP = kK / 2;
  const auto aligned = [&](int columns, int pad = kK / 2) {
    const int64_t places = columns * conv.axes[2].stride;
    const size_t all = static_cast<size_t>(places) * sizeof(T), bytes = all < 16 ? all : 16;
    return most_columns(conv) >= columns && (conv.axes[2].pad - pad) % places == 0 &&
           is_aligned(conv.x.data, bytes) && is_aligned(conv.y.data, bytes);
  };
  if (conv.axes[2].stride != 1) {
    if (aligned(kWide / 2)) return launch<T, kK, 2, kP, kWide / 2, true>(conv, workspace, stream);
    return launch<T, kK, 2, kP, 1, false>(conv, workspace, stream);
  }
  if constexpr (kK == 7) {
    if (aligned(8)) return launch<T, kK, 1, kP, 8, true>(conv, workspace, stream);
  }
  if (aligned(kWide)) return launch<T, kK, 1, kP, kWide, true>(conv, workspace, stream);
  if (kWide > 4 && aligned(4)) return launch<T, kK, 1, kP, 4, true>(conv, workspace, stream);
  if (aligned(2)) return launch<T, kK, 1, kP, 2, true>(conv, workspace, stream);
  if (aligned(2, kP + 1)) return launch<T, kK, 1, kP + 1, 2, true>(conv, workspace, stream);
  launch<T, kK, 1, kP, 1, true>(conv, workspace, stream);
}

}  // namespace

void depthwise_grad_weight(const Conv& conv, DepthwiseKernel kernel, float* workspace, Stream stream) {
  if (kernel == DepthwiseKernel::kSmall) return depthwise_small_grad_weight(conv, workspace, stream);
  if (kernel == DepthwiseKernel::kBands) {
    depthwise_bands_grad_weight(conv, workspace, stream);
    return add_parts(conv, depthwise_bands_parts(conv), PartOrder::kTapsOfChannel,
                     PartRows::of_images(bands_images_in_part(conv), conv.axes[1].y), workspace, stream);
  }
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    with_one_of<3, 5, 7>(conv.axes[2].kernel,
                         [&](auto taps) { launch_stride<T, taps()>(conv, workspace, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
