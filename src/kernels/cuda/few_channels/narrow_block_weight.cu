// SPDX-License-Identifier: Apache-2.0
// w[o, c, t] = Σ_{n,p} y[n, o, p] · x[n, c, pS − P + t·D] on tensor cores, 16 x channels of a group, or of
// whole groups, at a time.
//
// A block takes 16 y channels, 16 of the x channels they meet and a part of all boxes of rows: both tensors
// in shared memory as rows of channels, x with its surroundings. For 16 pixels a warp reads y once and, for
// each of its taps, x where the tap finds it, both transposed on the way: nine taps make 18 products for 10
// reads. Of more taps warps own up to nine each, in order. The warps that own the same taps share the pixels
// and add up at the end; parts go to the workspace and are added in order. What lies between groups is
// dropped.
#include "kernels/cuda/counts.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/narrow_block.cuh"
#include "kernels/cuda/few_channels/narrow_block_weight_plan.h"
#include "kernels/cuda/few_channels/narrow_blocks.h"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

using namespace block_weight;

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

// kTaps: of a warp; taps beyond the last are multiplied like it, and dropped.
template <class T, int kTaps>
__global__ void __launch_bounds__(kMostWarps * 32)
    weight_kernel(const __grid_constant__ Cut p, const T* x, const T* y, float* parts) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int o_chunk = static_cast<int>(blockIdx.x) % p.o_chunks,
            x_chunk = static_cast<int>(blockIdx.x) / p.o_chunks % p.x_chunks,
            group = static_cast<int>(blockIdx.x) / p.o_chunks / p.x_chunks,
            part = static_cast<int>(blockIdx.y);
  const int c0 = x_chunk * kBlockChannels, o0 = o_chunk * kBlockChannels;
  const int x0 = group * p.x_channels + c0, y0 = group * p.y_channels + o0;
  const int x_live = min(min(p.x_channels - c0, kBlockChannels), p.all_x - x0),
            y_live = min(min(p.y_channels - o0, kBlockChannels), p.all_y - y0);
  unsigned char* const of_y = shared;
  unsigned char* const of_x = shared + p.filled * 32;
  const uint32_t at_y = shared_address(of_y), at_x = shared_address(of_x);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_tap = warp % p.owners * kTaps, share = warp / p.owners;
  const int y_line = lane / 16 * 8 + lane % 8, y_half = lane / 8 % 2;
  const int x_line = lane / 8 % 2 * 8 + lane % 8, x_half = lane / 16;

  int taps[kTaps];
#pragma unroll
  for (int i = 0; i < kTaps; ++i) taps[i] = tap_offset(p, min(first_tap + i, p.taps - 1));
  float sums[kTaps][2][4] = {};
  const int end = min((part + 1) * p.in_part, p.tiles);
  for (int tile = part * p.in_part; tile < end; ++tile) {
    const int n = tile / p.row_tiles, row0 = tile % p.row_tiles * p.rows;
    __syncthreads();
    stage_block(of_y, image_of(p, y, n, y0, y_live, p.all_y, p.yh, p.yw, p.y_whole), p.places, p.filled,
                p.by_width, row0, 0);
    stage_block(of_x, image_of(p, x, n, x0, x_live, p.all_x, p.xh, p.xw, p.x_whole), p.box_rows * p.pitch,
                p.box_rows * p.pitch, p.by_pitch, row0 * p.stride_h - p.pad_h, -p.pad_w);
    __syncthreads();
    for (int step = share; step < p.filled / 16; step += p.shares) {
      uint32_t column = static_cast<uint32_t>(min(step * 16 + x_line, p.places - 1));
      const int row = static_cast<int>(p.by_width.split(column));
      const int base = row * p.stride_h * p.pitch + static_cast<int>(column) * p.stride_w;
      uint32_t a[4];
      load_matrices<true>(at_y + block_chunk(step * 16 + y_line, y_half), a);
#pragma unroll
      for (int i = 0; i < kTaps; ++i) {
        uint32_t b[4];
        load_matrices<true>(at_x + block_chunk(base + taps[i], x_half), b);
        multiply_add(sums[i][0], a, b[0], b[1], T{});
        multiply_add(sums[i][1], a, b[2], b[3], T{});
      }
    }
  }

  auto* const of_warps = reinterpret_cast<float*>(shared);  // [warp][y channel][x channel]
  float* const out = parts + part * p.weights;
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        of_warps[warp * 256 + (lane / 4 + e / 2 * 8) * 16 + j * 8 + lane % 4 * 2 + e % 2] = sums[i][j][e];
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < p.owners * 256; at += static_cast<int>(blockDim.x)) {
      const int o = at / 16 % 16, c = at % 16, tap = at / 256 * kTaps + i;
      if (o >= y_live || c >= x_live || tap >= p.taps || (o0 + o) / p.in_group != c / p.in_group) continue;
      float sum = of_warps[at];
      for (int s = 1; s < p.shares; ++s) sum += of_warps[s * p.owners * 256 + at];
      out[(int64_t{y0 + o} * p.x_in_group + (c0 + c) % p.x_in_group) * p.taps + tap] = sum;
    }
  }
}

template <class T, int kTaps>
void launch(const Conv& conv, const Cut& p, float* workspace, Stream stream) {
  const int parts = ceil_of(p.tiles, p.in_part);
  const auto bytes = static_cast<int>(bytes_of(p));
  if (bytes > 48 << 10)
    cudaFuncSetAttribute(weight_kernel<T, kTaps>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>(ceil_of(p.all_x, p.x_channels) * p.o_chunks * p.x_chunks),
                  static_cast<unsigned>(parts));
  weight_kernel<T, kTaps><<<grid, p.owners * p.shares * 32, static_cast<size_t>(bytes), stream>>>(
      p, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
  add_parts(conv, parts, PartOrder::kTapsOfChannel, {p.in_part, p.row_tiles, p.rows, 1, conv.axes[1].y},
            workspace, stream);
}

template <class T>
void launch_taps(const Conv& conv, bool last, float* workspace, Stream stream) {
  const Cut p = cut_of(conv, last);
  switch (p.of_warp) {
    case 1:
      return launch<T, 1>(conv, p, workspace, stream);
    case 3:
      return launch<T, 3>(conv, p, workspace, stream);
    case 5:
      return launch<T, 5>(conv, p, workspace, stream);
    case 7:
      return launch<T, 7>(conv, p, workspace, stream);
    default:
      return launch<T, 9>(conv, p, workspace, stream);
  }
}

}  // namespace

void block_grad_weight(const Conv& conv, bool channels_last, float* workspace, Stream stream) {
  conv.x.dtype == DType::kF16 ? launch_taps<__half>(conv, channels_last, workspace, stream)
                              : launch_taps<__nv_bfloat16>(conv, channels_last, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
