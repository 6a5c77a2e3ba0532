// SPDX-License-Identifier: Apache-2.0
// w[t] = Σ_{n,o} x[n, o − P + t] · y[n, o] of one channel.
//
// A block takes a channel and a part of its images, tile by tile: y and the x around it in shared memory as
// FP32. A thread owns eight taps in a row; for four pixels it reads four more values of x and four of y, and
// makes 32 products. Where there are fewer strips of taps than threads, several threads share the pixels of a
// strip and add up at the end.
//
// Values of x beyond the edge are zeros; who adds the parts takes a sum that is NaN from the formula.
#include "kernels/cuda/depthwise/depthwise.h"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 8;

struct Planes {
  int channels, images, images_in_part;
  int xh, xw, yh, yw, kh, kw, pad_h, pad_w;
  int strips;                     // of eight taps: all of a kernel
  int strips_across;              // of a kernel's row
  int row_shares, column_shares;  // threads that share a strip
  int row_tiles, column_tiles;
  int x_pitch, y_pitch;
};

template <class T, int kRows, int kColumns>
__global__ void __launch_bounds__(kThreads)
    grad_weight_kernel(const __grid_constant__ Planes p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(16) float shared[];
  float* const y_tile = shared;
  float* const x_tile = shared + kRows * p.y_pitch;
  const int channel = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int strip = static_cast<int>(threadIdx.x) % p.strips,
            share = static_cast<int>(threadIdx.x) / p.strips;
  const bool works = share < p.row_shares * p.column_shares;
  const int kh = strip / p.strips_across, kw = strip % p.strips_across * kEach;
  const int row_step = (kRows + p.row_shares - 1) / p.row_shares, column_step = kColumns / p.column_shares;
  const int row0 = share / p.column_shares * row_step, column0 = share % p.column_shares * column_step;
  float sums[kEach] = {};
  const int first = part * p.images_in_part, last = min(first + p.images_in_part, p.images);
  for (int image = first; image < last; ++image) {
    const int64_t plane = static_cast<int64_t>(image) * p.channels + channel;
    for (int tile = 0; tile < p.row_tiles * p.column_tiles; ++tile) {
      const int h0 = tile / p.column_tiles * kRows, w0 = tile % p.column_tiles * kColumns;
      __syncthreads();
      load_tile(y_tile, p.y_pitch, kRows, kColumns, y + plane * p.yh * p.yw, p.yh, p.yw, h0, w0);
      load_tile(x_tile, p.x_pitch, kRows + p.kh - 1, kColumns + p.strips_across * kEach + 4,
                x + plane * p.xh * p.xw, p.xh, p.xw, h0 - p.pad_h, w0 - p.pad_w);
      __syncthreads();
      if (!works) continue;
      const int rows = min(min(row0 + row_step, kRows), p.yh - h0),
                columns = min(column0 + column_step, p.yw - w0);
      for (int r = row0; r < rows; ++r) {
        const float* line = x_tile + (r + kh) * p.x_pitch + kw;
        const float* of_y = y_tile + r * p.y_pitch;
        float values[kEach + 4];
        load_four(line + column0, values);
        load_four(line + column0 + 4, values + 4);
#pragma unroll 2
        for (int c = column0; c < columns; c += 4) {
          float g[4];
          load_four(line + c + 8, values + 8);
          load_four(of_y + c, g);
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < kEach; ++j) sums[j] = fmaf(values[i + j], g[i], sums[j]);
#pragma unroll
          for (int j = 0; j < kEach; ++j) values[j] = values[j + 4];
        }
      }
    }
  }
  __syncthreads();
  float* const all = shared;  // [share][strip][kEach]
  if (works)
    for (int j = 0; j < kEach; ++j) all[(share * p.strips + strip) * kEach + j] = sums[j];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < p.strips * kEach; i += kThreads) {
    const int w = i / kEach % p.strips_across * kEach + i % kEach, h = i / kEach / p.strips_across;
    if (w >= p.kw) continue;
    float sum = 0;
    for (int s = 0; s < p.row_shares * p.column_shares; ++s) sum += all[s * p.strips * kEach + i];
    parts[((static_cast<int64_t>(part) * p.channels + channel) * p.kh + h) * p.kw + w] = sum;
  }
}

template <class T, int kRows, int kColumns>
void launch(Planes p, const Conv& conv, float* workspace, Stream stream) {
  p.strips_across = (p.kw + kEach - 1) / kEach;
  p.strips = p.kh * p.strips_across;
  int shares = kThreads / p.strips;
  if (shares < 1) shares = 1;
  // Rows first; what is left of them along columns, in whole steps of four.
  p.row_shares = 1;
  while (p.row_shares * 2 <= shares && p.row_shares * 2 <= kRows) p.row_shares *= 2;
  p.column_shares = 1;
  while (p.column_shares * 2 * p.row_shares <= shares && kColumns / (p.column_shares * 2) >= 16)
    p.column_shares *= 2;
  p.row_tiles = (p.yh + kRows - 1) / kRows;
  p.column_tiles = (p.yw + kColumns - 1) / kColumns;
  p.x_pitch = tile_pitch(kColumns + p.strips_across * kEach + 4);
  p.y_pitch = tile_pitch(kColumns);
  const int tiles = kRows * p.y_pitch + (kRows + p.kh - 1) * p.x_pitch;
  const int at_end = p.row_shares * p.column_shares * p.strips * kEach;
  const int bytes = (tiles > at_end ? tiles : at_end) * 4;
  const int64_t parts = depthwise_tiles_parts(conv, TilesKernel::kTiles);
  p.images_in_part = static_cast<int>((conv.batch + parts - 1) / parts);
  start(grad_weight_kernel<T, kRows, kColumns>, {p.channels, parts}, kThreads, bytes, stream, p, conv.x.data,
        conv.y.data, workspace);
}

void sum_tiles(const Conv& conv, float* workspace, Stream stream) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Planes p{};
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  p.xh = static_cast<int>(h.x);
  p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y);
  p.yw = static_cast<int>(w.y);
  p.kh = static_cast<int>(h.kernel);
  p.kw = static_cast<int>(w.kernel);
  p.pad_h = static_cast<int>(h.pad);
  p.pad_w = static_cast<int>(w.pad);
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    launch<T, 32, 32>(p, conv, workspace, stream);
  });
}

}  // namespace

void depthwise_tiles_grad_weight(const Conv& conv, TilesKernel kernel, float* workspace, Stream stream) {
  if (kernel == TilesKernel::kSpans)
    depthwise_spans_grad_weight(conv, workspace, stream);
  else
    sum_tiles(conv, workspace, stream);
  const int64_t parts = depthwise_tiles_parts(conv, kernel);
  const PartRows rows = kernel == TilesKernel::kTiles
                            ? PartRows::of_images((conv.batch + parts - 1) / parts, conv.axes[1].y)
                            : PartRows{};
  add_parts(conv, parts, PartOrder::kTapsOfChannel, rows, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
