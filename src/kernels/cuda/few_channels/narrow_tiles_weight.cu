// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, pS − P + t] for the few c of a group.
//
// A thread owns kO y channels, kC x channels and one row of taps: kO·kC·kKw sums. For four pixels in a row it
// reads 16 bytes of each y channel and the x values around them, which serve 4·kO·kC·kKw products (7x7,
// stride 2: 336 products for 16 reads). A block takes some y channels of `in_block` groups and a part of all
// boxes of pixels, boxes of both tensors in shared memory as FP32; several threads share the rows and runs of
// a box and add up at the end. Parts go to the workspace; a second kernel adds them in order.
//
// Values beyond the edges are zeros; a sum that is NaN is taken from the formula.

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_tile.cuh"
#include "kernels/cuda/few_channels/narrow_weight_cut.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

using namespace narrow_weight;

// What a thread owns.
struct Unit {
  int kh, o_block, c_block, g;
};
__device__ Unit unit_of(const Cut& p, int number) {
  Unit u;
  u.kh = number % p.kh;
  number /= p.kh;
  u.o_block = number % p.o_blocks;
  number /= p.o_blocks;
  u.c_block = number % p.c_blocks;
  u.g = number / p.c_blocks;
  return u;
}

template <bool kLast>
__device__ void stage_groups(float* tile, Box box, int group_pitch, const float* data, int n, int height,
                             int width, int channel0, int step, int groups, int all, int row0, int column0) {
  const int64_t plane = int64_t{height} * width;
  for (int i = 0; i < groups; ++i) {
    if (kLast && box.channels == step && i > 0) break;  // all groups at once, below
    Box now = box;
    const int64_t first = channel0 + int64_t{i} * step;
    if constexpr (kLast) {
      if (box.channels == step) now.channels = groups * step;
      stage<true>(tile + i * group_pitch, now, Image{data + n * plane * all + first, all, height, width},
                  row0, column0);
    } else {
      stage<false>(tile + i * group_pitch, now,
                   Image{data + (int64_t{n} * all + first) * plane, all, height, width}, row0, column0);
    }
  }
}

template <class S>
struct Sums {
  float of[S::kO][S::kC][S::kKw] = {};

  // A run of quads in a row: y and x begin at its first place; o_pitch, c_pitch: floats between the thread's
  // channels.
  __device__ void add(const float* y, int o_pitch, const float* x, int c_pitch, int quads) {
#pragma unroll 1
    for (int q = 0; q < quads; ++q) {
      float of_y[S::kO][4];
#pragma unroll
      for (int o = 0; o < S::kO; ++o) load_chunks<1>(y + o * o_pitch + q * 4, of_y[o]);
#pragma unroll
      for (int c = 0; c < S::kC; ++c) {
        float values[S::kWindow * 4];
        load_chunks<S::kWindow>(x + c * c_pitch + q * 4 * S::kSw, values);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int o = 0; o < S::kO; ++o)
#pragma unroll
            for (int k = 0; k < S::kKw; ++k)
              of[o][c][k] = fmaf(of_y[o][i], values[i * S::kSw + k], of[o][c][k]);
      }
    }
  }
};

template <class S, bool kLast>
__global__ void __launch_bounds__(S::kThreads, 512 / S::kThreads)
    weight_kernel(const __grid_constant__ Cut p, const float* x, const float* y, float* parts) {
  extern __shared__ __align__(16) float shared[];
  const int group0 = static_cast<int>(blockIdx.x) / p.o_chunks * p.in_block;
  const int groups = min(p.in_block, p.groups - group0);
  const int o0 = static_cast<int>(blockIdx.x) % p.o_chunks * p.o_blocks * S::kO;
  const int part = static_cast<int>(blockIdx.y);
  const Unit unit = unit_of(p, static_cast<int>(threadIdx.x) % p.units);
  const int share = static_cast<int>(threadIdx.x) / p.units;
  const int row = share / p.runs, first = share % p.runs * p.run, quads = min(p.run, p.quads - first);
  const bool works = row < p.rows && unit.g < groups;
  const float* const y_from =
      shared + unit.g * p.y_group + unit.o_block * p.y_box.plane + row * p.y_box.pitch + first * 4;
  const float* const x_from = shared + p.in_block * p.y_group + unit.g * p.x_group +
                              unit.c_block * S::kC * p.x_box.plane +
                              (row * p.stride_h + unit.kh) * p.x_box.pitch + first * 4 * S::kSw;
  Box y_box = p.y_box;
  y_box.channels = min(y_box.channels, p.y_channels - o0);

  Sums<S> sums;
  const int end = min((part + 1) * p.in_part, p.tiles);
  for (int tile = part * p.in_part; tile < end; ++tile) {
    const int column0 = tile % p.column_tiles * p.quads * 4,
              row0 = tile / p.column_tiles % p.row_tiles * p.rows, n = tile / p.column_tiles / p.row_tiles;
    __syncthreads();
    stage_groups<kLast>(shared, y_box, p.y_group, y, n, p.yh, p.yw, group0 * p.y_channels + o0, p.y_channels,
                        groups, p.groups * p.y_channels, row0, column0);
    stage_groups<kLast>(shared + p.in_block * p.y_group, p.x_box, p.x_group, x, n, p.xh, p.xw,
                        group0 * p.x_channels, p.x_channels, groups, p.groups * p.x_channels,
                        row0 * p.stride_h - p.pad_h, column0 * S::kSw - p.pad_w);
    close_copies();
    wait_for_copies<0>();
    __syncthreads();
    if (works && row0 + row < p.yh)
      sums.add(y_from, p.o_blocks * p.y_box.plane, x_from, p.x_box.plane, quads);
  }

  // One of the thread's y channels at a time: [share][unit][kSlice]
  float* const out = parts + part * p.weights;
  const int shares = p.rows * p.runs;
#pragma unroll
  for (int o = 0; o < S::kO; ++o) {
    __syncthreads();
    if (share < shares) {
#pragma unroll
      for (int i = 0; i < S::kSlice; ++i)
        shared[static_cast<int>(threadIdx.x) * S::kSlice + i] = sums.of[o][i / S::kKw][i % S::kKw];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < p.units * S::kSlice; i += static_cast<int>(blockDim.x)) {
      float sum = 0;
      for (int s = 0; s < shares; ++s) sum += shared[s * p.units * S::kSlice + i];
      const Unit u = unit_of(p, i / S::kSlice);
      const int channel = o0 + o * p.o_blocks + u.o_block, c = u.c_block * S::kC + i % S::kSlice / S::kKw;
      if (channel >= p.y_channels || c >= p.x_channels || u.g >= groups) continue;
      const int64_t line = (int64_t{group0 + u.g} * p.y_channels + channel) * p.x_channels + c;
      out[(line * p.kh + u.kh) * S::kKw + i % S::kKw] = sum;
    }
  }
}

template <class S, bool kLast>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Cut p = cut_of<S>(conv, kLast);
  const int bytes = shared_bytes<S>(p), threads = ceil_of(p.units * p.rows * p.runs, 32) * 32;
  const int parts = ceil_of(p.tiles, p.in_part);
  start(weight_kernel<S, kLast>, {ceil_of(p.groups, p.in_block) * p.o_chunks, parts}, threads, bytes, stream,
        p, conv.x.data, conv.y.data, workspace);
  const PartRows rows =
      p.column_tiles == 1 ? PartRows{p.in_part, p.row_tiles, p.rows, 1, conv.axes[1].y} : PartRows{};
  add_parts(conv, parts, PartOrder::kTapsOfChannel, rows, workspace, stream);
}

}  // namespace

void narrow_tiles_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  with_any_shape(conv, [&](auto shape) {
    using S = decltype(shape);
    channels_last ? launch<S, true>(conv, workspace, stream) : launch<S, false>(conv, workspace, stream);
  });
}

}  // namespace retrograd::kernels::cuda
