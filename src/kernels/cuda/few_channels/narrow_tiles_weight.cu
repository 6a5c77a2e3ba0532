// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, pS − P + t] for the few c of a group.
//
// A thread owns kO y channels, kC x channels and one row of taps: kO·kC·kKw sums. For four places in a row it
// reads 16 bytes of each y channel and the x values around them, which serve 4·kO·kC·kKw products (7x7,
// stride 2: 336 products for 16 reads). A block takes some y channels of `in_block` groups and a part of all
// boxes of places, boxes of both tensors in shared memory as FP32; several threads share the rows and runs of
// a box and add up at the end. Parts go to the workspace; a second kernel adds them in order.
//
// Values beyond the edges are zeros; a sum that is not finite is taken from the formula.
#include <algorithm>

#include "kernels/cuda/few_channels/narrow_finish.h"
#include "kernels/cuda/few_channels/narrow_tile.cuh"
#include "kernels/cuda/few_channels/narrow_tiles.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kMostShared = 88 * 1024;
constexpr int kMostRows = 16;
constexpr int kWaves = 2;

// kThreads: 128 where few threads own different sums, so that more blocks share a multiprocessor.
template <int kO_, int kC_, int kKw_, int kSw_, int kThreads_>
struct Shape {
  static constexpr int kO = kO_, kC = kC_, kKw = kKw_, kSw = kSw_, kThreads = kThreads_;
  static constexpr int kWindow = (kKw + 3 * kSw + 3) / 4;  // chunks of x that four places read
  static constexpr int kSlice = kC * kKw;
};

struct Cut {
  int groups, x_channels, y_channels;  // channels of a group
  int xh, xw, yh, yw;
  int kh, stride_h, pad_h, pad_w;
  int in_block, o_blocks, c_blocks, o_chunks;  // groups of a block; threads along channels; blocks along y's
  int units;                                   // threads that own different sums
  int rows, runs, run;                         // threads that share a box: rows, and runs of quads in a row
  int quads, row_tiles, column_tiles;          // of a box
  int tiles, in_part;
  int x_group, y_group;  // floats of a group
  Box x_box, y_box;
  int64_t weights;
};

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

int ceil_of(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

Box box_of(int channels, int rows, int columns) {
  Box box{};
  box.channels = channels;
  box.rows = rows;
  box.columns = columns;
  box.pitch = odd_pitch(columns);
  box.plane = (rows * box.pitch / 4 | 1) * 4;
  box.lanes = lanes_for(columns);
  box.in_group = 1;
  return box;
}

template <class S>
int shared_bytes(const Cut& p) {
  const int sums = p.units * p.rows * p.runs * S::kSlice;
  return std::max(sums, p.in_block * (p.x_group + p.y_group)) * 4;
}

template <class S>
void set_tile(Cut& p, int rows, int quads) {
  p.rows = rows;
  p.quads = quads;
  p.runs = std::max(1, std::min(S::kThreads / (p.units * rows), ceil_of(quads, 2)));
  p.run = ceil_of(quads, p.runs);
  p.runs = ceil_of(quads, p.run);
  p.y_box = box_of(std::min(p.y_channels, p.o_blocks * S::kO), rows, quads * 4);
  p.x_box = box_of(std::min(p.x_channels, p.c_blocks * S::kC), (rows - 1) * p.stride_h + p.kh,
                   (quads - 1) * 4 * S::kSw + S::kWindow * 4);
  p.y_group = p.o_blocks * S::kO * p.y_box.plane;
  p.x_group = p.c_blocks * S::kC * p.x_box.plane;
  if (p.in_block == 1) return;
  // Groups begin five chunks apart modulo eight: neighbouring threads have other rows of taps, then groups.
  p.y_box.in_group = p.y_channels, p.y_box.group_gap = (13 - p.y_group / 4 % 8) % 8 * 4;
  p.x_box.in_group = p.x_channels, p.x_box.group_gap = (13 - p.x_group / 4 % 8) % 8 * 4;
  p.y_group += p.y_box.group_gap;
  p.x_group += p.x_box.group_gap;
}

template <class S>
Cut cut_of(const Conv& conv, bool last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.groups = static_cast<int>(conv.groups);
  p.x_channels = static_cast<int>(conv.x_channels);
  p.y_channels = static_cast<int>(conv.y_channels);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.kh = static_cast<int>(h.kernel), p.stride_h = static_cast<int>(h.stride);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.weights = conv.groups * conv.y_channels * conv.x_channels * h.kernel * w.kernel;
  p.c_blocks = ceil_of(conv.x_channels, S::kC);
  // Channels last: 16 channels are whole 32-byte sectors.
  const int fewest = std::min(p.x_channels, p.y_channels);
  p.in_block = last && p.y_channels % S::kO == 0 && fewest < 16 ? std::min(p.groups, ceil_of(16, fewest)) : 1;
  p.in_block = std::max(1, std::min(p.in_block, S::kThreads / (p.kh * p.c_blocks)));
  const int most = std::max(1, std::min(16, S::kThreads / (p.kh * p.c_blocks * p.in_block)));
  p.o_chunks = ceil_of(ceil_of(conv.y_channels, S::kO), most);
  p.o_blocks = ceil_of(ceil_of(conv.y_channels, S::kO), p.o_chunks);
  p.units = p.kh * p.o_blocks * p.c_blocks * p.in_block;

  const int quads = ceil_of(w.y, 4);
  int across = ceil_of(quads, ceil_of(quads, 32));
  set_tile<S>(p, 1, across);
  while (shared_bytes<S>(p) > kMostShared && across > 1) set_tile<S>(p, 1, across = ceil_of(across, 2));
  for (int tiles = p.yh; tiles >= 1; --tiles) {
    Cut trial = p;
    const int rows = ceil_of(h.y, tiles);
    set_tile<S>(trial, rows, across);
    if (rows > kMostRows || trial.units * rows > S::kThreads || shared_bytes<S>(trial) > kMostShared) break;
    p = trial;
  }
  p.row_tiles = ceil_of(h.y, p.rows);
  p.column_tiles = ceil_of(quads, p.quads);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles * p.column_tiles;
  // Blocks for the multiprocessors of a large GPU, as many as they hold at once.
  const int threads = p.units * p.rows * p.runs;
  const int at_once = std::max(1, std::min(220 * 1024 / shared_bytes<S>(p), 512 / threads));
  const int parts = std::max(1, kWaves * 132 * at_once / (ceil_of(p.groups, p.in_block) * p.o_chunks));
  p.in_part = ceil_of(p.tiles, std::min(parts, p.tiles));
  return p;
}

template <class S, bool kLast>
void launch(const Conv& conv, float* workspace, Stream stream) {
  const Cut p = cut_of<S>(conv, kLast);
  const int bytes = shared_bytes<S>(p), threads = ceil_of(p.units * p.rows * p.runs, 32) * 32;
  const int parts = ceil_of(p.tiles, p.in_part);
  cudaFuncSetAttribute(weight_kernel<S, kLast>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>(ceil_of(p.groups, p.in_block) * p.o_chunks),
                  static_cast<unsigned>(parts));
  weight_kernel<S, kLast><<<grid, static_cast<unsigned>(threads), static_cast<size_t>(bytes), stream>>>(
      p, static_cast<const float*>(conv.x.data), static_cast<const float*>(conv.y.data), workspace);
  add_parts(conv, parts, workspace, stream);
}

// Calls function(S{}) with the first shape that fits.
template <class S, class... More, class Function>
bool with_shape(const Conv& conv, Function&& function) {
  const Axis& w = conv.axes[2];
  const int64_t owners = conv.axes[1].kernel * (conv.x_channels / S::kC) *
                         std::min<int64_t>(16, ceil_of(conv.y_channels, S::kO));
  if (w.kernel == S::kKw && w.stride == S::kSw && conv.x_channels % S::kC == 0 &&
      (S::kThreads > 128 || owners <= 24)) {
    function(S{});
    return true;
  }
  if constexpr (sizeof...(More) > 0) return with_shape<More...>(conv, function);
  return false;
}
template <class Function>
bool with_any_shape(const Conv& conv, Function&& function) {
  return with_shape<Shape<4, 4, 3, 1, 128>, Shape<4, 4, 3, 1, 256>, Shape<4, 4, 3, 2, 256>,  // narrow groups
                    Shape<4, 3, 7, 2, 256>,                                                  // stems
                    Shape<4, 3, 5, 1, 256>,                                                  // small networks
                    Shape<4, 1, 10, 5, 128>, Shape<4, 1, 10, 5, 256>>                        // waveforms
      (conv, function);
}

}  // namespace

bool has_narrow_grad_weight(const Conv& conv) {
  return conv.axes[1].kernel * conv.x_channels <= 256 && with_any_shape(conv, [](auto) {});
}

int64_t narrow_weight_parts(const Conv& conv, bool channels_last) {
  int64_t parts = 0;
  with_any_shape(conv, [&](auto shape) {
    const Cut p = cut_of<decltype(shape)>(conv, channels_last);
    parts = ceil_of(p.tiles, p.in_part);
  });
  return parts;
}

void narrow_tiles_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  with_any_shape(conv, [&](auto shape) {
    using S = decltype(shape);
    channels_last ? launch<S, true>(conv, workspace, stream) : launch<S, false>(conv, workspace, stream);
  });
}

}  // namespace retrograd::kernels::cuda
