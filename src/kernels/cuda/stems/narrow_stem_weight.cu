// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, pS − P + t] for at most four c and an even stride along rows, on
// tensor cores.
//
// x lies in shared memory as pixels of four channels, eight bytes each. With an even stride the pixels that
// taps 2k and 2k + 1 meet begin at a multiple of 16 bytes: eight columns (tap, channel) of the product, as
// they lie. 7x7 with three channels: 224 columns for 147 weights. A warp takes 16 y channels and, for 16
// pixels, reads y once and x for every row and pair of taps, both transposed on the way: 28 products for 15
// reads. Warps beyond the y channels share the pixels; parts go to the workspace and are added in order.
//
// One row of at most 16 (channel, tap) needs no such trick: they are copied pixel by pixel.
//
// Zeros beyond the edges are multiplied; a sum that is NaN is taken from the formula.

#include "kernels/cuda/counts.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_block.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/stems/narrow_stem_weight_plan.h"

namespace retrograd::kernels::cuda {
namespace {

using namespace stem_weight;

// A thread a pixel.
template <class T>
__device__ void stage_pixels(unsigned char* tile, const Cut& p, const T* image, int row0, int column0) {
  const int64_t plane = int64_t{p.xh} * p.xw, all = int64_t{p.groups} * p.x_channels;
  for (int i = static_cast<int>(threadIdx.x); i < p.box_rows * p.pitch; i += kThreads) {
    uint32_t column = static_cast<uint32_t>(i);
    const int h = row0 + static_cast<int>(p.by_pitch.split(column)), w = column0 + static_cast<int>(column);
    uint32_t values[4] = {};
    if (static_cast<unsigned>(h) < static_cast<unsigned>(p.xh) &&
        static_cast<unsigned>(w) < static_cast<unsigned>(p.xw)) {
      const int64_t place = int64_t{h} * p.xw + w;
      const auto* const source =
          reinterpret_cast<const unsigned short*>(image + (p.last ? place * all : place));
#pragma unroll
      for (int c = 0; c < 4; ++c)
        if (c < p.x_channels) values[c] = source[p.last ? c : c * plane];
    }
    *reinterpret_cast<uint2*>(tile + i * 8) = {values[0] | values[1] << 16, values[2] | values[3] << 16};
  }
}

// One row of taps: place by place the values that its taps meet, at most 16, as (channel, tap).
template <class T>
__device__ void stage_patches(unsigned char* tile, const Cut& p, const T* image, int row0, int column0) {
  const int64_t plane = int64_t{p.xh} * p.xw, all = int64_t{p.groups} * p.x_channels;
  for (int i = static_cast<int>(threadIdx.x); i < p.filled; i += kThreads) {
    uint32_t column = static_cast<uint32_t>(i);
    const int h = row0 + static_cast<int>(p.by_width.split(column)) * p.stride_h,
              first = column0 + static_cast<int>(column) * p.stride_w;
    const bool inside = i < p.rows * p.width && static_cast<unsigned>(h) < static_cast<unsigned>(p.xh);
    const auto* const source =
        reinterpret_cast<const unsigned short*>(image + int64_t{h} * p.xw * (p.last ? all : 1));
    uint32_t words[8] = {};
    int c = 0, kw = 0;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const int w = first + kw;
      if (inside && c < p.x_channels && static_cast<unsigned>(w) < static_cast<unsigned>(p.xw))
        words[j / 2] |= static_cast<uint32_t>(source[p.last ? w * all + c : c * plane + w]) << (j % 2 * 16);
      if (++kw == p.kw) kw = 0, ++c;
    }
    *reinterpret_cast<uint4*>(tile + block_chunk(i, 0)) = {words[0], words[1], words[2], words[3]};
    *reinterpret_cast<uint4*>(tile + block_chunk(i, 1)) = {words[4], words[5], words[6], words[7]};
  }
}

template <class T, int kKh, int kPairs>
__global__ void __launch_bounds__(kThreads)
    stem_kernel(const __grid_constant__ Cut p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int group = static_cast<int>(blockIdx.x) / p.o_chunks,
            o0 = static_cast<int>(blockIdx.x) % p.o_chunks * p.o_blocks * 16,
            part = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int block = warp % p.o_blocks, share = warp / p.o_blocks;
  const int64_t x_plane = int64_t{p.xh} * p.xw, y_plane = int64_t{p.yh} * p.yw;
  const int all_y = p.groups * p.y_channels;
  unsigned char* const of_x = shared + p.o_blocks * p.filled * 32;
  const uint32_t at_y = shared_address(shared) + static_cast<uint32_t>(block * p.filled * 32),
                 at_x = shared_address(of_x);
  const int y_line = lane / 16 * 8 + lane % 8, y_chunk = lane / 8 % 2, x_line = lane / 8 % 2 * 8 + lane % 8;

  float sums[kKh][kPairs][4] = {};
  const int end = min((part + 1) * p.in_part, p.tiles);
  for (int tile = part * p.in_part; tile < end; ++tile) {
    const int column0 = tile % p.column_tiles * p.width, row0 = tile / p.column_tiles % p.row_tiles * p.rows,
              n = tile / p.column_tiles / p.row_tiles;
    __syncthreads();
    for (int i = 0; i < p.o_blocks; ++i) {
      const int o = o0 + i * 16, live = min(16, p.y_channels - o);
      const int64_t first = int64_t{group} * p.y_channels + o;
      const BlockImage<T> image{y + n * y_plane * all_y + first * (p.last ? 1 : y_plane),
                                p.last ? 1 : y_plane,
                                p.last ? all_y : 1,
                                live,
                                p.yh,
                                p.yw,
                                p.whole && live == 16};
      stage_block(shared + i * p.filled * 32, image, p.rows * p.width, p.filled, p.by_width, row0, column0);
    }
    const T* const image =
        x + n * x_plane * p.groups * p.x_channels + int64_t{group} * p.x_channels * (p.last ? 1 : x_plane);
    const int x_row = row0 * p.stride_h - p.pad_h, x_column = column0 * p.stride_w - p.pad_w;
    if constexpr (kKh == 1)
      stage_patches(of_x, p, image, x_row, x_column);
    else
      stage_pixels(of_x, p, image, x_row, x_column);
    __syncthreads();
    if (share >= p.shares) continue;
    for (int step = share; step < p.filled / 16; step += p.shares) {
      uint32_t column = static_cast<uint32_t>(min(step * 16 + x_line, p.rows * p.width - 1));
      const int row = static_cast<int>(p.by_width.split(column));
      const uint32_t base =
          at_x +
          static_cast<uint32_t>(row * p.stride_h * p.pitch + static_cast<int>(column) * p.stride_w) * 8 +
          static_cast<uint32_t>(lane / 16) * 16;
      uint32_t a[4];
      load_matrices<true>(at_y + block_chunk(step * 16 + y_line, y_chunk), a);
#pragma unroll
      for (int kh = 0; kh < kKh; ++kh)
#pragma unroll
        for (int pair = 0; pair < kPairs; pair += 2) {
          uint32_t b[4];
          load_matrices<true>(kKh == 1 ? at_x + block_chunk(step * 16 + x_line, lane / 16)
                                       : base + static_cast<uint32_t>(kh * p.pitch * 8 + pair * 16),
                              b);
          multiply_add(sums[kh][pair], a, b[0], b[1], T{});
          multiply_add(sums[kh][pair + 1], a, b[2], b[3], T{});
        }
    }
  }

  constexpr int kColumns = kPairs * 8;
  auto* const of_warps = reinterpret_cast<float*>(shared);  // [warp][y channel][tap, channel]
  float* const out = parts + part * p.weights;
#pragma unroll
  for (int kh = 0; kh < kKh; ++kh) {
    __syncthreads();
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        of_warps[(warp * 16 + lane / 4 + e / 2 * 8) * kColumns + pair * 8 + lane % 4 * 2 + e % 2] =
            sums[kh][pair][e];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < p.o_blocks * 16 * kColumns; i += kThreads) {
      const int o = o0 + i / kColumns, n = i % kColumns;
      const int kw = kKh == 1 ? n % p.kw : n / 4, c = kKh == 1 ? n / p.kw : n % 4;
      if (o >= p.y_channels || kw >= p.kw || c >= p.x_channels) continue;
      float sum = 0;
      for (int s = 0; s < p.shares; ++s) sum += of_warps[s * p.o_blocks * 16 * kColumns + i];
      out[(((int64_t{group} * p.y_channels + o) * p.x_channels + c) * kKh + kh) * p.kw + kw] = sum;
    }
  }
}

template <class T, int kKh, int kPairs>
void launch(const Conv& conv, bool last, float* workspace, Stream stream) {
  const Cut p = cut_of(conv, last, kKh, kPairs);
  const int parts = ceil_of(p.tiles, p.in_part);
  start(stem_kernel<T, kKh, kPairs>, {p.groups * p.o_chunks, parts}, kThreads, bytes_of(p, kPairs), stream, p,
        conv.x.data, conv.y.data, workspace);
  const PartRows rows =
      p.column_tiles == 1 ? PartRows{p.in_part, p.row_tiles, p.rows, 1, conv.axes[1].y} : PartRows{};
  add_parts(conv, parts, PartOrder::kTapsOfChannel, rows, workspace, stream);
}

}  // namespace

void stem_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  with_window(conv, [&]<int kKh, int kPairs>(Count<kKh>, Count<kPairs>) {
    with_half(conv.x.dtype, [&](auto type) {
      launch<decltype(type), kKh, kPairs>(conv, channels_last, workspace, stream);
    });
  });
}

}  // namespace retrograd::kernels::cuda
