// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, p − P + t] of narrow groups on
// tensor cores: 3x3, 16 channels of whole groups at a time; what lies between
// groups is dropped. Σ_{n,p} y[n, o, p] on the side.
//
// A block goes through boxes of image rows, both tensors in shared memory;
// while it multiplies one, the next is on its way. Its warps share the pixels:
// for 16 of them a warp reads y once and x once a tap, transposed on the way,
// 19 products for 10 reads. They add up at the end; parts go to the workspace,
// with what lies between groups, and a second kernel adds them in order.

#include "kernels/cuda/counts.h"
#include "kernels/cuda/few_channels/group_block.cuh"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

using namespace group_weight;

template <class T, int kWarps, bool kLast>
__global__ void __launch_bounds__(kWarps * 32, blocks_at_once(kWarps, kLast))
    group_weight_kernel(const __grid_constant__ Cut p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int first = static_cast<int>(blockIdx.x) * 16, part = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int y_line = lane / 16 * 8 + lane % 8, y_chunk = lane / 8 % 2;
  const int x_line = lane / 8 % 2 * 8 + lane % 8, x_chunk = lane / 16;
  const int y_bytes = p.y_box.places * 32, tile_bytes = y_bytes + p.x_box.places * 32;
  const int64_t x_plane = int64_t{p.x.height} * p.x.width, y_plane = int64_t{p.y.height} * p.y.width;
  if constexpr (!kLast) {
    clear_bytes(shared, 2 * tile_bytes);
    __syncthreads();
  }
  TwoPlaces of_x, of_y;
  const int end = min((part + 1) * p.in_part, p.tiles);
  const auto fetch = [&](int tile, int buffer) {
    if (tile >= end) return;
    const int n = tile / p.row_tiles, row0 = tile % p.row_tiles * p.rows;
    const T* const from_y = y + n * y_plane * p.y.channels + first * (kLast ? 1 : y_plane);
    const T* const from_x = x + n * x_plane * p.x.channels + first * (kLast ? 1 : x_plane);
    if constexpr (kLast) {
      copy_box(shared + buffer * tile_bytes, p.y_box, p.y, from_y, row0);
      copy_box(shared + buffer * tile_bytes + y_bytes, p.x_box, p.x, from_x, row0 - p.above);
    } else {
      of_y.load(p.y_box, p.y, from_y, row0);
      of_x.load(p.x_box, p.x, from_x, row0 - p.above);
    }
  };

  float sums[9][2][4] = {};
  int tile = part * p.in_part;
  fetch(tile, 0);
  for (int buffer = 0; tile < end; ++tile, buffer ^= 1) {
    if constexpr (kLast) {
      close_copies();
      wait_for_copies<0>();
    } else {
      of_y.store(shared + buffer * tile_bytes, p.y_box);
      of_x.store(shared + buffer * tile_bytes + y_bytes, p.x_box);
    }
    __syncthreads();
    fetch(tile + 1, buffer ^ 1);
    const uint32_t at_y = shared_address(shared) + static_cast<uint32_t>(buffer * tile_bytes),
                   at_x = at_y + static_cast<uint32_t>(y_bytes);
    for (int step = warp; step < p.y_box.places / 16; step += kWarps) {
      uint32_t column = static_cast<uint32_t>(min(step * 16 + x_line, p.rows * p.y.width - 1));
      const int row = static_cast<int>(p.by_width.split(column));
      const int base = row * p.x_box.pitch + static_cast<int>(column);
      uint32_t a[4];
      load_matrices<true>(at_y + block_chunk(step * 16 + y_line, y_chunk), a);
#pragma unroll
      for (int tap = 0; tap < 9; ++tap) {
        uint32_t b[4];
        load_matrices<true>(at_x + block_chunk(base + tap / 3 * p.x_box.pitch + tap % 3, x_chunk), b);
        multiply_add(sums[tap][0], a, b[0], b[1], T{});
        multiply_add(sums[tap][1], a, b[2], b[3], T{});
      }
    }
  }

  // Three taps at a time: [warp][tap][y channel][x channel]
  auto* const of_warps = reinterpret_cast<float*>(shared);
  float* const out = parts + (int64_t{part} * p.y.channels + first) * 144;  // [tap][y channel][x channel]
#pragma unroll
  for (int kh = 0; kh < 3; ++kh) {
    __syncthreads();
#pragma unroll
    for (int kw = 0; kw < 3; ++kw)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 4; e += 2)
          *reinterpret_cast<float2*>(of_warps + (warp * 3 + kw) * 256 + (lane / 4 + e / 2 * 8) * 16 + j * 8 +
                                     lane % 4 * 2) = {sums[kh * 3 + kw][j][e], sums[kh * 3 + kw][j][e + 1]};
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 3 * 256; i += kWarps * 32) {
      float sum = of_warps[i];
#pragma unroll
      for (int s = 1; s < kWarps; ++s) sum += of_warps[s * 3 * 256 + i];
      out[kh * 3 * 256 + i] = sum;
    }
  }
}

template <class T, int kWarps, bool kLast>
void launch(const Conv& conv, const Cut& p, float* workspace, Stream stream) {
  const int bytes = bytes_of(p, kWarps);
  start(group_weight_kernel<T, kWarps, kLast>, {p.y.channels / 16, ceil_of(p.tiles, p.in_part)}, kWarps * 32,
        bytes, stream, p, conv.x.data, conv.y.data, workspace);
}

}  // namespace

void group_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  int warps = 0;
  const Cut p = cut_of(conv, channels_last, warps);
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<4, 8>(warps, [&](auto of_block) {
      with_one_of<true, false>(channels_last, [&](auto last) {
        launch<decltype(type), of_block(), last()>(conv, p, workspace, stream);
      });
    });
  });
  add_parts(conv, ceil_of(p.tiles, p.in_part), PartOrder::kSixteens,
            {p.in_part, p.row_tiles, p.rows, 1, conv.axes[1].y}, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
