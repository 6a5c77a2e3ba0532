// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, pS − P + t·D] on tensor cores, for at most 16 x channels of a
// group, or 16 channels of whole groups.
//
// A block takes 16 y channels, the x channels they meet and a part of all boxes of rows: both tensors in
// shared memory as rows of channels, x with its surroundings. For 16 places a warp reads y once and, for each
// of its taps, x where the tap finds it, both transposed on the way: 3x3 makes 18 products for 10 reads; of
// 5x5 a warp owns one row, all would not fit its registers. The warps that own the same taps share the places
// and add up at the end; parts go to the workspace and are added in order. What lies between groups is
// dropped.
#include <algorithm>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/narrow_block.cuh"
#include "kernels/cuda/few_channels/narrow_blocks.h"
#include "kernels/cuda/few_channels/narrow_finish.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kMostShared = 48 * 1024;
constexpr int kWantedBlocks = 132 * 4;

struct Cut {
  int all_x, all_y;            // channels of all groups
  int x_channels, y_channels;  // of a group, or of 16 channels of whole groups
  int in_group;                // x channels and y channels of different groups do not meet
  int x_in_group;              // how the weights count them
  int o_chunks;                // blocks along the y channels
  int xh, xw, yh, yw;
  int stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
  int rows, row_tiles;  // rows of y in a box
  int box_rows, pitch;  // of the box of x
  int places, filled;   // of y in a box; a multiple of 16
  int tiles, in_part;
  FastDiv by_width, by_pitch;
  bool last, x_whole, y_whole;
  int64_t weights;
};

template <class T>
__device__ BlockImage<T> image_of(const Cut& p, const T* data, int n, int first, int live, int all,
                                  int height, int width, bool whole) {
  const int64_t plane = int64_t{height} * width;
  return {data + n * plane * all + first * (p.last ? 1 : plane),
          p.last ? 1 : plane,
          p.last ? all : 1,
          live,
          height,
          width,
          whole && live == kBlockChannels};
}

// kEach: rows of taps of a warp.
template <class T, int kKh, int kKw, int kEach, int kShares>
__global__ void __launch_bounds__(kKh / kEach * kShares * 32)
    weight_kernel(const __grid_constant__ Cut p, const T* x, const T* y, float* parts) {
  constexpr int kOwners = kKh / kEach, kThreads = kOwners * kShares * 32;
  extern __shared__ __align__(128) unsigned char shared[];
  const int x0 = static_cast<int>(blockIdx.x) / p.o_chunks * p.x_channels,
            y_begin = static_cast<int>(blockIdx.x) / p.o_chunks * p.y_channels,
            o0 = static_cast<int>(blockIdx.x) % p.o_chunks * kBlockChannels,
            part = static_cast<int>(blockIdx.y);
  const int y0 = y_begin + o0, x_live = min(min(p.x_channels, kBlockChannels), p.all_x - x0),
            y_live = min(min(p.y_channels - o0, kBlockChannels), p.all_y - y0);
  unsigned char* const of_y = shared;
  unsigned char* const of_x = shared + p.filled * 32;
  const uint32_t at_y = shared_address(of_y), at_x = shared_address(of_x);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int kh0 = warp % kOwners * kEach, share = warp / kOwners;
  const int y_line = lane / 16 * 8 + lane % 8, y_chunk = lane / 8 % 2;
  const int x_line = lane / 8 % 2 * 8 + lane % 8, x_chunk = lane / 16;

  float sums[kEach][kKw][2][4] = {};
  const int end = min((part + 1) * p.in_part, p.tiles);
  for (int tile = part * p.in_part; tile < end; ++tile) {
    const int n = tile / p.row_tiles, row0 = tile % p.row_tiles * p.rows;
    __syncthreads();
    stage_block(of_y, image_of(p, y, n, y0, y_live, p.all_y, p.yh, p.yw, p.y_whole), p.places, p.filled,
                p.by_width, row0, 0);
    stage_block(of_x, image_of(p, x, n, x0, x_live, p.all_x, p.xh, p.xw, p.x_whole), p.box_rows * p.pitch,
                p.box_rows * p.pitch, p.by_pitch, row0 * p.stride_h - p.pad_h, -p.pad_w);
    __syncthreads();
    for (int step = share; step < p.filled / 16; step += kShares) {
      uint32_t column = static_cast<uint32_t>(min(step * 16 + x_line, p.places - 1));
      const int row = static_cast<int>(p.by_width.split(column));
      const int base =
          (row * p.stride_h + kh0 * p.dilation_h) * p.pitch + static_cast<int>(column) * p.stride_w;
      uint32_t a[4];
      load_matrices<true>(at_y + block_chunk(step * 16 + y_line, y_chunk), a);
#pragma unroll
      for (int kh = 0; kh < kEach; ++kh)
#pragma unroll
        for (int kw = 0; kw < kKw; ++kw) {
          uint32_t b[4];
          load_matrices<true>(
              at_x + block_chunk(base + kh * p.dilation_h * p.pitch + kw * p.dilation_w, x_chunk), b);
          multiply_add(sums[kh][kw][0], a, b[0], b[1], T{});
          multiply_add(sums[kh][kw][1], a, b[2], b[3], T{});
        }
    }
  }

  auto* const of_warps = reinterpret_cast<float*>(shared);  // [warp][y channel][x channel]
  float* const out = parts + part * p.weights;
#pragma unroll
  for (int tap = 0; tap < kEach * kKw; ++tap) {
    const int kh = tap / kKw, kw = tap % kKw;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        of_warps[warp * 256 + (lane / 4 + e / 2 * 8) * 16 + j * 8 + lane % 4 * 2 + e % 2] =
            sums[kh][kw][j][e];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kOwners * 256; i += kThreads) {
      const int o = i / 16 % 16, c = i % 16, row = i / 256 * kEach + kh;
      if (o >= y_live || c >= x_live || (o0 + o) / p.in_group != c / p.in_group) continue;
      float sum = of_warps[i];
#pragma unroll
      for (int s = 1; s < kShares; ++s) sum += of_warps[s * kOwners * 256 + i];
      out[((int64_t{y0 + o} * p.x_in_group + c % p.x_in_group) * kKh + row) * kKw + kw] = sum;
    }
  }
}

int ceil_of(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

void set_rows(Cut& p, int rows, int kh) {
  p.rows = rows;
  p.box_rows = (rows - 1) * p.stride_h + (kh - 1) * p.dilation_h + 1;
  p.places = rows * p.yw;
  p.filled = ceil_of(p.places, 16) * 16;
}
int64_t bytes_of(const Cut& p) {
  return std::max<int64_t>(8 * 1024, p.filled * 32 + int64_t{p.box_rows} * p.pitch * 32);
}

Cut cut_of(const Conv& conv, bool last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  Cut p{};
  p.all_x = static_cast<int>(conv.groups * conv.x_channels);
  p.all_y = static_cast<int>(conv.groups * conv.y_channels);
  const bool together =
      conv.groups > 1 && conv.x_channels == conv.y_channels && kBlockChannels % conv.x_channels == 0;
  p.in_group = together ? static_cast<int>(conv.x_channels) : 1 << 20;
  p.x_in_group = static_cast<int>(conv.x_channels);
  p.x_channels = together ? kBlockChannels : static_cast<int>(conv.x_channels);
  p.y_channels = together ? kBlockChannels : static_cast<int>(conv.y_channels);
  p.o_chunks = ceil_of(p.y_channels, kBlockChannels);
  p.xh = static_cast<int>(h.x), p.xw = static_cast<int>(w.x);
  p.yh = static_cast<int>(h.y), p.yw = static_cast<int>(w.y);
  p.stride_h = static_cast<int>(h.stride), p.stride_w = static_cast<int>(w.stride);
  p.dilation_h = static_cast<int>(h.dilation), p.dilation_w = static_cast<int>(w.dilation);
  p.pad_h = static_cast<int>(h.pad), p.pad_w = static_cast<int>(w.pad);
  p.pitch = (p.yw - 1) * p.stride_w + static_cast<int>(w.kernel - 1) * p.dilation_w + 1;
  p.by_width = FastDiv(p.yw);
  p.by_pitch = FastDiv(p.pitch);
  p.last = last;
  p.x_whole =
      last && p.all_x % 8 == 0 && p.x_channels % 8 == 0 && reinterpret_cast<uintptr_t>(conv.x.data) % 16 == 0;
  p.y_whole =
      last && p.all_y % 8 == 0 && p.y_channels % 8 == 0 && reinterpret_cast<uintptr_t>(conv.y.data) % 16 == 0;
  p.weights = int64_t{p.all_y} * p.x_in_group * h.kernel * w.kernel;
  const int kh = static_cast<int>(h.kernel);
  set_rows(p, 1, kh);
  for (int tiles = p.yh; tiles >= 1; --tiles) {
    Cut trial = p;
    set_rows(trial, ceil_of(p.yh, tiles), kh);
    if (bytes_of(trial) > kMostShared) break;
    p = trial;
  }
  p.row_tiles = ceil_of(p.yh, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles;
  const int blocks = ceil_of(p.all_x, p.x_channels) * p.o_chunks;
  p.in_part = ceil_of(p.tiles, std::max(1, std::min(p.tiles, kWantedBlocks / blocks)));
  return p;
}

template <class T, int kKh, int kKw, int kEach, int kShares>
void launch(const Conv& conv, bool last, float* workspace, Stream stream) {
  const Cut p = cut_of(conv, last);
  const int parts = ceil_of(p.tiles, p.in_part);
  const dim3 grid(static_cast<unsigned>(ceil_of(p.all_x, p.x_channels) * p.o_chunks),
                  static_cast<unsigned>(parts));
  weight_kernel<T, kKh, kKw, kEach, kShares>
      <<<grid, kKh / kEach * kShares * 32, static_cast<size_t>(bytes_of(p)), stream>>>(
          p, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
  add_parts(conv, parts, workspace, stream);
}

template <class T>
void launch_window(const Conv& conv, bool last, float* workspace, Stream stream) {
  conv.axes[1].kernel == 3 ? launch<T, 3, 3, 3, 4>(conv, last, workspace, stream)
                           : launch<T, 5, 5, 1, 1>(conv, last, workspace, stream);
}

}  // namespace

bool has_block_grad_weight(const Conv& conv) {
  const int64_t kernel = conv.axes[1].kernel;
  return conv.x_channels <= kBlockChannels && (kernel == 3 || kernel == 5) && conv.axes[2].kernel == kernel &&
         bytes_of(cut_of(conv, false)) <= kMostShared;
}

int64_t block_weight_parts(const Conv& conv) {
  const Cut p = cut_of(conv, false);
  return ceil_of(p.tiles, p.in_part);
}

void block_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  conv.x.dtype == DType::kF16 ? launch_window<__half>(conv, channels_last, workspace, stream)
                              : launch_window<__nv_bfloat16>(conv, channels_last, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
