// SPDX-License-Identifier: Apache-2.0
// x[n, c, q] = Σ_{o, t} y[n, o, q + P − t] · w[o, c, t] of narrow groups on
// tensor cores: 3x3, 16 channels of whole groups at a time, weights between
// groups zero.
//
// A block keeps its nine 16 x 16 matrices of weights in registers and goes
// through boxes of image rows; while it multiplies one, the next is on its way.
// Channels last: rows of the product are pixels, a thread holds four
// neighbouring channels of a pixel. Planes: rows are channels, a thread holds
// two neighbouring pixels.
//
// Zeros are multiplied: a result that is NaN is taken from the formula.
#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/group_block.cuh"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/few_channels/narrow_repair.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

using namespace group_gather;

constexpr int kTiles = 2;  // of 16 places that a warp makes at once
// Blocks of a multiprocessor at once: what their registers allow.
constexpr int blocks_at_once(int warps) { return warps == 8 ? 2 : 4; }

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

template <class T, int kWarps, bool kLast>
void launch(const Conv& conv, const Cut& p, Stream stream) {
  const int columns = p.x.channels / 16, wanted = 132 * blocks_at_once(kWarps);
  const int workers = ceil_of(p.tiles, ceil_of(p.tiles, std::max(1, wanted / columns)));
  const size_t bytes = static_cast<size_t>(kWeightBytes + 2 * p.box.places * 32);
  start(group_gather_kernel<T, kWarps, kLast>, {columns, workers}, kWarps * 32, bytes, stream, conv, p,
        conv.y.data, conv.w.data, conv.x.data);
}

}  // namespace

void group_grad_input(const Conv& conv, bool channels_last, Stream stream) {
  int warps = 0;
  const Cut p = cut_of(conv, warps);
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<4, 8>(warps, [&](auto of_block) {
      with_one_of<true, false>(
          channels_last, [&](auto last) { launch<decltype(type), of_block(), last()>(conv, p, stream); });
    });
  });
}

}  // namespace retrograd::kernels::cuda
