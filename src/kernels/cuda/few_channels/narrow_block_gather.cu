// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, (q + P − t·D)/S] · w[o, c, t] on tensor cores, for 16 results of a pixel.
//
// Along an axis the S pixels iS … iS + S − 1 of x read the same window of y: with residues r and channels c
// the results of a super-pixel are (r_h, r_w, c), at most 16. Without strides they are 16 channels of whole
// groups. For each place of the window they are a 16 x 16 matrix of weights by 16 y channels, zero where no
// tap matches or groups differ. A block keeps these matrices, takes boxes of super-pixels and goes through
// the y channels 16 at a time: their box of y in shared memory, read by each warp where the window finds it.
// Groups of four waste three products of four, which tensor cores have to spare; bytes are the limit.
//
// Zeros are multiplied: a result that is NaN is taken from the formula.
#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_block.cuh"
#include "kernels/cuda/few_channels/narrow_block_gather_plan.h"
#include "kernels/cuda/few_channels/narrow_repair.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

using namespace block_gather;

constexpr int kWantedBlocks = 132 * 2;

__device__ int tap_of(const BlockAxis& a, int r, int v) {
  const int tap = a.first + r - v * a.tap_step;
  return tap < a.kernel ? tap : -1;
}

// [y block][window place][result][y channel]. A thread keeps its result and its y channel of a block.
template <class T>
__device__ void stage_weights(unsigned char* target, const Cut& p, const T* w, int x0, int y0) {
  static_assert(kThreads == 256);
  const int o = static_cast<int>(threadIdx.x) % 16, result = static_cast<int>(threadIdx.x) / 16;
  const int c = result % p.x_channels, residue = result / p.x_channels;
  const int rh = residue / p.w.stride, rw = residue % p.w.stride, window = p.h.window * p.w.window;
  constexpr int kAtOnce = 9;  // loads under way
  for (int block = 0; block < p.y_blocks; ++block) {
    const int channel = block * 16 + o;
    const bool there = rh < p.h.stride && channel < p.y_channels && x0 + c < p.all_x &&
                       y0 + channel < p.all_y && channel / p.in_group == c / p.in_group;
    const T* const source = w + int64_t{y0 + channel} * p.w_o + c % p.in_group * p.w_i;
    int vh = 0, vw = 0;
    for (int first = 0; first < window; first += kAtOnce) {
      T values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int kh = tap_of(p.h, rh, vh), kw = tap_of(p.w, rw, vw);
        values[k] = T{};
        if (there && first + k < window && kh >= 0 && kw >= 0) values[k] = source[kh * p.w_h + kw * p.w_w];
        if (++vw == p.w.window) vw = 0, ++vh;
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int row = (block * window + first + k) * 16 + result;
        if (first + k < window)
          *reinterpret_cast<T*>(target + block_chunk(row, o / 8) + o % 8 * 2) = values[k];
      }
    }
  }
}

// Results of a box from [result][super-place] to x, a warp a row.
template <class T>
__device__ void write_box(T* image, const T* staged, const Cut& p, int x0, int live, int h0, int w0, int rows,
                          int columns) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channels = p.last ? 1 : live, each = p.last ? p.x_channels : 1;
  for (int line = warp; line < rows * channels; line += kWarps) {
    const int h = line / channels, first = line % channels;
    const T* const source = staged + h / p.h.stride * p.width;
    const int residues = h % p.h.stride * p.w.stride;
    const int64_t row = int64_t{h0 + h} * p.w.x + w0;
    for (int i = lane; i < columns * each; i += 32) {
      uint32_t c = static_cast<uint32_t>(i), residue = c;
      if (p.last) residue = p.by_channels.split(c);
      const int column = static_cast<int>(residue), channel = p.last ? static_cast<int>(c) : first;
      if (channel >= live) continue;
      const int place = static_cast<int>(p.by_stride.split(residue));
      const int result = (residues + static_cast<int>(residue)) * p.x_channels + channel;
      image[p.last ? (row + column) * p.all_x + x0 + channel
                   : int64_t{x0 + channel} * p.h.x * p.w.x + row + column] =
          source[result * p.staged_pitch + place];
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Cut p, const T* y, const T* w,
                  T* x) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int x0 = static_cast<int>(blockIdx.x) * p.x_channels,
            y0 = static_cast<int>(blockIdx.x) * p.y_channels;
  const int y_live = min(p.y_channels, p.all_y - y0), x_live = min(p.x_channels, p.all_x - x0);
  const int64_t y_plane = int64_t{p.h.y} * p.w.y, x_plane = int64_t{p.h.x} * p.w.x;
  unsigned char* const of_weights = shared;
  unsigned char* const tile = shared + p.y_blocks * p.h.window * p.w.window * 512;
  auto* const staged = reinterpret_cast<T*>(tile);  // [result][super-place]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const uint32_t from = shared_address(tile), with = shared_address(of_weights);
  stage_weights(of_weights, p, w, x0, y0);

  for (int number = static_cast<int>(blockIdx.y); number < p.tiles; number += static_cast<int>(gridDim.y)) {
    const int column0 = number % p.column_tiles * p.width,
              row0 = number / p.column_tiles % p.row_tiles * p.rows,
              n = number / p.column_tiles / p.row_tiles;
    const int places = min(p.rows, (p.h.x + p.h.stride - 1) / p.h.stride - row0) * p.width;
    int base[kTiles];
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      uint32_t column = static_cast<uint32_t>(min((warp + i * kWarps) * 16 + lane % 16, places - 1));
      const int row = static_cast<int>(p.by_width.split(column));
      base[i] = row * p.pitch + static_cast<int>(column);
    }
    float sums[kTiles][2][4] = {};
    int matrix = 0;
    for (int block = 0; block < p.y_blocks; ++block) {
      const int o0 = block * kBlockChannels, live = min(kBlockChannels, y_live - o0);
      const BlockImage<T> image{y + n * y_plane * p.all_y + (y0 + o0) * (p.last ? 1 : y_plane),
                                p.last ? 1 : y_plane,
                                p.last ? p.all_y : 1,
                                live,
                                p.h.y,
                                p.w.y,
                                p.whole && live == kBlockChannels};
      __syncthreads();
      stage_block(tile, image, p.box_rows * p.pitch, p.box_rows * p.pitch, p.by_pitch, row0 + p.h.low,
                  column0 + p.w.low);
      __syncthreads();
      for (int vh = 0; vh < p.h.window; ++vh)
        for (int vw = 0; vw < p.w.window; ++vw, ++matrix) {
          const int shift = vh * p.h.step * p.pitch + vw * p.w.step;
          uint32_t b[4];
          load_matrices<false>(with + block_chunk(matrix * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2), b);
#pragma unroll
          for (int i = 0; i < kTiles; ++i) {
            if ((warp + i * kWarps) * 16 >= places) break;
            uint32_t a[4];
            load_matrices<false>(from + block_chunk(base[i] + shift, lane / 16), a);
            multiply_add(sums[i][0], a, b[0], b[1], T{});
            multiply_add(sums[i][1], a, b[2], b[3], T{});
          }
        }
    }

    const int h0 = row0 * p.h.stride, w0 = column0 * p.w.stride;
    const int rows = min(p.rows * p.h.stride, p.h.x - h0), columns = min(p.width * p.w.stride, p.w.x - w0);
    T* const image = x + n * x_plane * p.all_x;
    bool finite = true;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int place = (warp + i * kWarps) * 16 + lane / 4 + half * 8;
        if (place >= places) continue;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int result = j * 8 + lane % 4 * 2;
          const float* const two = &sums[i][j][half * 2];
          finite = finite && isfinite(two[0]) && isfinite(two[1]);
          const T first = from_float<T>(two[0]), second = from_float<T>(two[1]);
          if (p.last && p.pairs) {  // stride 1, full width: places here are places there
            T* const target = image + (int64_t{h0} * p.w.x + place) * p.all_x + x0 + result;
            if (result < x_live) *reinterpret_cast<Pack<T, 2>*>(target) = {first, second};
          } else {
            staged[result * p.staged_pitch + place] = first;
            staged[(result + 1) * p.staged_pitch + place] = second;
          }
        }
      }
    finite = __syncthreads_and(finite);
    if (!p.pairs) {
      write_box(image, staged, p, x0, x_live, h0, w0, rows, columns);
    } else if (!p.last) {  // a channel's rows are one run here and there
      for (int c = warp; c < x_live; c += kWarps) {
        auto* const target = reinterpret_cast<uint32_t*>(image + (x0 + c) * x_plane + int64_t{h0} * p.w.x);
        const auto* const source = reinterpret_cast<const uint32_t*>(staged + c * p.staged_pitch);
        for (int i = lane; i < rows * p.w.x / 2; i += 32) target[i] = source[i];
      }
    }
    if (finite) continue;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += kThreads)
      repair_grad_input(conv, n, {x0, x_live}, {h0 + i / columns, 1}, {w0 + i % columns, 1});
  }
}

template <class T>
void launch(const Conv& conv, bool last, Stream stream) {
  const Cut p = cut_of(conv, last);
  const int blocks = ceil_of(p.all_x, p.x_channels);
  const int bytes = static_cast<int>(weight_bytes(p) + tile_bytes(p));
  const int each = ceil_of(p.tiles, std::min(p.tiles, ceil_of(kWantedBlocks, blocks)));
  start(gather_kernel<T>, {blocks, ceil_of(p.tiles, each)}, kThreads, bytes, stream, conv, p, conv.y.data,
        conv.w.data, conv.x.data);
}

}  // namespace

void block_grad_input(const Conv& conv, bool channels_last, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) { launch<decltype(type)>(conv, channels_last, stream); });
}

}  // namespace retrograd::kernels::cuda
