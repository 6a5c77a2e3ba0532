// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, q + P − t] · w[o, c, t] of narrow groups on
// tensor cores: 3x3, 16 channels of whole groups at a time, weights between
// groups zero.
//
// A block keeps its nine 16 x 16 matrices of weights in registers and goes
// through boxes of image rows; while it multiplies one, the next is on its way.
// Channels last: rows of the product are places, a thread holds four
// neighbouring channels of a place. Planes: rows are channels, a thread holds
// two neighbouring places.
//
// Zeros are multiplied: a result that is not finite is taken from the formula.
#include <algorithm>

#include "kernels/cuda/few_channels/group_block.cuh"
#include "kernels/cuda/few_channels/group_blocks.h"
#include "kernels/cuda/few_channels/narrow_repair.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kTiles = 2;  // of 16 places that a warp makes at once
constexpr int kWeightBytes = 9 * 512;
// Blocks of a multiprocessor at once: what their registers allow.
constexpr int blocks_at_once(int warps) { return warps == 8 ? 2 : 4; }

struct Cut {
  GroupImage x, y;
  int in_group;
  int rows, row_tiles, tiles;  // rows of x in a box
  int above;                   // rows of y that a box begins above its rows of x
  GroupBox box;
  FastDiv by_width;
  int64_t w_o, w_i, w_h, w_w;
};

// [tap][result][y channel], taps in the order in which the window meets them.
// `kLast`: results are laid so that a thread's four are neighbours.
template <class T, int kThreads, bool kLast>
__device__ void stage_weights(unsigned char* target, const Cut& p, const T* w, int first) {
  constexpr int kEach = 9 * 256 / kThreads;
  T values[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    const int o = i % 16, line = i / 16 % 16, tap = 8 - i / 256;
    const int c = kLast ? line % 8 / 2 * 4 + line / 8 * 2 + line % 2 : line;
    values[k] = T{};
    if (o / p.in_group == c / p.in_group)
      values[k] = w[(first + o) * p.w_o + c % p.in_group * p.w_i + tap / 3 * p.w_h + tap % 3 * p.w_w];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    *reinterpret_cast<T*>(target + block_chunk(i / 16, i % 16 / 8) + i % 8 * 2) = values[k];
  }
}

template <class T, int kWarps, bool kLast>
__global__ void __launch_bounds__(kWarps * 32, blocks_at_once(kWarps))
    group_gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Cut p, const T* y,
                        const T* w, T* x) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int first = static_cast<int>(blockIdx.x) * 16;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t x_plane = int64_t{p.x.height} * p.x.width, y_plane = int64_t{p.y.height} * p.y.width;
  unsigned char* const tiles = shared + kWeightBytes;
  const int tile_bytes = p.box.places * 32;
  if constexpr (!kLast) clear_bytes(tiles, 2 * tile_bytes);

  const auto image_of = [&](int number) {
    return y + (kLast ? number / p.row_tiles * y_plane * p.y.channels + first
                      : (int64_t{number / p.row_tiles} * p.y.channels + first) * y_plane);
  };
  const auto row_of = [&](int number) { return number % p.row_tiles * p.rows; };
  TwoPlaces fetched;
  const auto fetch = [&](int tile, int buffer) {
    if (tile >= p.tiles) return;
    if constexpr (kLast)
      copy_box(tiles + buffer * tile_bytes, p.box, p.y, image_of(tile), row_of(tile) - p.above);
    else
      fetched.load(p.box, p.y, image_of(tile), row_of(tile) - p.above);
  };
  int number = static_cast<int>(blockIdx.y);
  fetch(number, 0);
  stage_weights<T, kWarps * 32, kLast>(shared, p, w, first);
  __syncthreads();
  uint32_t weights[9][4];
#pragma unroll
  for (int tap = 0; tap < 9; ++tap)
    load_matrices<false>(
        shared_address(shared) + (kLast ? block_chunk(tap * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2)
                                        : block_chunk(tap * 16 + lane % 16, lane / 16)),
        weights[tap]);

  bool finite = true;
  for (int buffer = 0; number < p.tiles; number += static_cast<int>(gridDim.y), buffer ^= 1) {
    if constexpr (kLast) {
      close_copies();
      wait_for_copies<0>();
    } else {
      fetched.store(tiles + buffer * tile_bytes, p.box);
    }
    __syncthreads();
    fetch(number + static_cast<int>(gridDim.y), buffer ^ 1);

    const int row0 = row_of(number), places = min(p.rows, p.x.height - row0) * p.x.width;
    const uint32_t from = shared_address(tiles) + static_cast<uint32_t>(buffer * tile_bytes);
    T* const image = x + number / p.row_tiles * x_plane * p.x.channels + (kLast ? first : first * x_plane) +
                     int64_t{row0} * p.x.width * (kLast ? p.x.channels : 1);
    for (int place0 = warp * kTiles * 16; place0 < places; place0 += kWarps * kTiles * 16) {
      int base[kTiles];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const int line = kLast ? lane % 16 : lane / 16 * 8 + lane % 8;
        uint32_t column = static_cast<uint32_t>(min(place0 + i * 16 + line, places - 1));
        const int row = static_cast<int>(p.by_width.split(column));
        base[i] = row * p.box.pitch + static_cast<int>(column);
      }
      float sums[kTiles][2][4] = {};
#pragma unroll
      for (int tap = 0; tap < 9; ++tap)
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          uint32_t of_y[4];
          load_matrices<false>(
              from + block_chunk(base[i] + tap / 3 * p.box.pitch + tap % 3, kLast ? lane / 16 : lane / 8 % 2),
              of_y);
          if constexpr (kLast) {
            multiply_add(sums[i][0], of_y, weights[tap][0], weights[tap][1], T{});
            multiply_add(sums[i][1], of_y, weights[tap][2], weights[tap][3], T{});
          } else {
            multiply_add(sums[i][0], weights[tap], of_y[0], of_y[1], T{});
            multiply_add(sums[i][1], weights[tap], of_y[2], of_y[3], T{});
          }
        }
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) finite = finite && isfinite(sums[i][j][e]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if constexpr (kLast) {
            const int place = place0 + i * 16 + lane / 4 + half * 8;
            const float four[4] = {sums[i][0][half * 2], sums[i][0][half * 2 + 1], sums[i][1][half * 2],
                                   sums[i][1][half * 2 + 1]};
            if (place < places) store_pack<T, 4>(image + int64_t{place} * p.x.channels + lane % 4 * 4, four);
          } else {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              const int place = place0 + i * 16 + j * 8 + lane % 4 * 2;
              const float two[2] = {sums[i][j][half * 2], sums[i][j][half * 2 + 1]};
              if (place < places) store_pack<T, 2>(image + (lane / 4 + half * 8) * x_plane + place, two);
            }
          }
        }
      }
    }
  }
  if (finite) return;
  // Everything that this thread has written, looked at again: a call within the
  // loop would cost registers.
  for (number = static_cast<int>(blockIdx.y); number < p.tiles; number += static_cast<int>(gridDim.y)) {
    const int row0 = row_of(number), places = min(p.rows, p.x.height - row0) * p.x.width;
    for (int place0 = warp * kTiles * 16; place0 < places; place0 += kWarps * kTiles * 16)
      for (int i = 0; i < kTiles * 8; ++i) {
        const int at =
            place0 + i / 8 * 16 + (kLast ? lane / 4 + i / 4 % 2 * 8 : i / 2 % 2 * 8 + lane % 4 * 2 + i % 2);
        const int c = kLast ? lane % 4 * 4 + i % 4 : lane / 4 + i / 4 % 2 * 8;
        if (at < places)
          repair_grad_input(conv, number / p.row_tiles, {first + c, 1}, {row0 + at / p.x.width, 1},
                            {at % p.x.width, 1});
      }
  }
}

int ceil_of(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

void set_rows(Cut& p, int rows) {
  p.rows = rows;
  p.box.rows = rows + 2;
  p.box.places = p.box.rows * p.box.pitch;
}
bool fits(const Cut& p, int warps) {
  return p.box.rows * p.y.width <= warps * 64 && kWeightBytes + 2 * p.box.places * 32 <= 48 * 1024;
}

// As many rows as fit, evenly; four warps where they take a whole image.
Cut cut_of(const Conv& conv, int& warps) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int all = static_cast<int>(conv.groups * conv.x_channels);
  Cut p{};
  p.x = {all, static_cast<int>(h.x), static_cast<int>(w.x)};
  p.y = {all, static_cast<int>(h.y), static_cast<int>(w.y)};
  p.in_group = static_cast<int>(conv.x_channels);
  p.above = 2 - static_cast<int>(h.pad);
  p.box.pitch = p.x.width + 2;
  p.box.edge = 2 - static_cast<int>(w.pad);
  p.box.by_pitch = FastDiv(p.box.pitch);
  p.box.by_half = FastDiv(std::max(1, p.y.width / 2));
  p.by_width = FastDiv(p.x.width);
  p.w_o = conv.w.strides[0], p.w_i = conv.w.strides[1], p.w_h = conv.w.strides[3], p.w_w = conv.w.strides[4];
  set_rows(p, p.x.height);
  warps = fits(p, 4) ? 4 : 8;
  for (int tiles = 1; !fits(p, warps) && p.rows > 1; ++tiles) set_rows(p, ceil_of(p.x.height, tiles));
  p.row_tiles = ceil_of(p.x.height, p.rows);
  p.tiles = static_cast<int>(conv.batch) * p.row_tiles;
  return p;
}

template <class T, int kWarps, bool kLast>
void launch(const Conv& conv, const Cut& p, Stream stream) {
  const int columns = p.x.channels / 16, wanted = 132 * blocks_at_once(kWarps);
  const int workers = ceil_of(p.tiles, ceil_of(p.tiles, std::max(1, wanted / columns)));
  const dim3 grid(static_cast<unsigned>(columns), static_cast<unsigned>(workers));
  const size_t bytes = static_cast<size_t>(kWeightBytes + 2 * p.box.places * 32);
  group_gather_kernel<T, kWarps, kLast><<<grid, kWarps * 32, bytes, stream>>>(
      conv, p, static_cast<const T*>(conv.y.data), static_cast<const T*>(conv.w.data),
      static_cast<T*>(conv.x.data));
}

template <class T>
void launch_layout(const Conv& conv, bool last, Stream stream) {
  int warps = 0;
  const Cut p = cut_of(conv, warps);
  if (warps == 4) return last ? launch<T, 4, true>(conv, p, stream) : launch<T, 4, false>(conv, p, stream);
  last ? launch<T, 8, true>(conv, p, stream) : launch<T, 8, false>(conv, p, stream);
}

}  // namespace

bool has_group_blocks(const Conv& conv, bool channels_last) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (conv.groups == 1 || conv.x_channels != conv.y_channels || conv.x_channels > 16 ||
      16 % conv.x_channels != 0 || conv.groups * conv.x_channels % 16 != 0)
    return false;
  for (const Axis& a : {h, w})
    if (a.kernel != 3 || a.stride != 1 || a.dilation != 1 || a.pad < 0 || a.pad > 2) return false;
  // Planes are read and written two places at a time.
  if (!channels_last && (w.x % 2 != 0 || w.y % 2 != 0)) return false;
  return true;
}

bool has_group_grad_input(const Conv& conv, bool channels_last) {
  if (!has_group_blocks(conv, channels_last)) return false;
  int warps = 0;
  const Cut p = cut_of(conv, warps);
  return fits(p, warps);
}

void group_grad_input(const Conv& conv, bool channels_last, Stream stream) {
  conv.x.dtype == DType::kF16 ? launch_layout<__half>(conv, channels_last, stream)
                              : launch_layout<__nv_bfloat16>(conv, channels_last, stream);
}

}  // namespace retrograd::kernels::cuda
