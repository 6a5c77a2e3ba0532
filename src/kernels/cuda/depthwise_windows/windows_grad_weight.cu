// SPDX-License-Identifier: Apache-2.0
// w[o,i,t] = Σ_{n,p} x[n,i,position(p,t)] · y[n,o,p]
//
// A block takes a tile of taps of a few channels over a part of the items (windows_plan.h): a thread reads
// four y of an item once and for each column of taps the x that meet them, 6 for 12 products with tiles of
// 3x3. At most 256 terms go to a thread's sum; sums of threads are added in a fixed tree, and a second kernel
// adds the parts. Neighbouring blocks take other taps of the same items, whose x and y are in L2 then.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise_windows/windows_item.h"
#include "kernels/cuda/depthwise_windows/windows_plan.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

struct TileOfChannels {
  TileTaps taps;
  int first;      // channel
  float* target;  // of the part
};

__device__ void store_sum(const WeightWindows& w, const TileOfChannels& tile, int channel, int slide,
                          int inner, float sum) {
  const DepthwiseWindows& p = w.windows;
  if (slide >= tile.taps.slide_count || inner >= tile.taps.inner_count || channel >= p.channels) return;
  const int64_t tap = tap_number(p, tile.taps, slide, inner);
  tile.target[p.channels_inside ? tap * p.channels + channel : int64_t{channel} * p.taps + tap] = sum;
}

// Lanes run along items, and a row of the block is a channel.
template <int kS, int kI>
__device__ void add_lanes(const WeightWindows& w, const TileOfChannels& tile, const float (&sums)[kS][kI][1],
                          float* shared) {
  const int warps = static_cast<int>(blockDim.x / 32), lane = static_cast<int>(threadIdx.x);
  float* const of_row = shared + static_cast<int>(threadIdx.y) * warps * kS * kI;
#pragma unroll
  for (int k = 0; k < kS * kI; ++k) {
    const float sum = warp_sum(sums[k / kI][k % kI][0]);
    if (lane % 32 == 0) of_row[lane / 32 * kS * kI + k] = sum;
  }
  __syncthreads();
  if (lane >= kS * kI) return;
  float sum = of_row[lane];
  for (int warp = 1; warp < warps; ++warp) sum += of_row[warp * kS * kI + lane];
  store_sum(w, tile, tile.first + static_cast<int>(threadIdx.y), lane / kI, lane % kI, sum);
}

// Lanes run along channels, and rows of the block are items.
template <int kS, int kI, int kPack>
__device__ void add_rows(const WeightWindows& w, const TileOfChannels& tile,
                         const float (&sums)[kS][kI][kPack], float* shared) {
  const int width = static_cast<int>(blockDim.x) * kPack, rows = static_cast<int>(blockDim.y);
#pragma unroll
  for (int k = 0; k < kS * kI; ++k)
#pragma unroll
    for (int c = 0; c < kPack; ++c)
      shared[(k * rows + static_cast<int>(threadIdx.y)) * width + static_cast<int>(threadIdx.x) * kPack + c] =
          sums[k / kI][k % kI][c];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int i = thread; i < kS * kI * width; i += static_cast<int>(blockDim.x * blockDim.y)) {
    const int k = i / width, channel = i % width;
    const float* const column = shared + k * rows * width + channel;
    float sum = column[0];
    for (int row = 1; row < rows; ++row) sum += column[row * width];
    store_sum(w, tile, tile.first + channel, k / kI, k % kI, sum);
  }
}

template <class T, int kS, int kI, int kPack>
__global__ void __launch_bounds__(kWindowsThreads)
    grad_weight_kernel(const __grid_constant__ WeightWindows w, const T* x, const T* y, float* parts) {
  extern __shared__ float shared[];
  const DepthwiseWindows& p = w.windows;
  const bool inside = p.channels_inside;
  uint32_t tap_tile = blockIdx.x;
  uint32_t channel_tile = w.by_tap_tiles.split(tap_tile);
  const uint32_t part = w.by_channel_tiles.split(channel_tile);
  const int width = static_cast<int>(inside ? blockDim.x : blockDim.y) * kPack;
  const TileOfChannels tile{tile_taps(w, tap_tile), static_cast<int>(channel_tile) * width,
                            parts + part * w.weights};

  float sums[kS][kI][kPack] = {};
  const int channel = tile.first + static_cast<int>(inside ? threadIdx.x : threadIdx.y) * kPack;
  if (channel < p.channels) {
    const auto pair = static_cast<uint32_t>(channel);
    x += int64_t{p.by_source.quotient(pair)} * p.source_channel;
    y += int64_t{p.by_result.quotient(pair)} * p.result_channel;
    const auto load = [](const T* address, float(&values)[kPack]) { load_pack<T, kPack>(address, values); };
    const uint32_t begin = part * w.items_a_part, end = min(p.items, begin + w.items_a_part);
    for (uint32_t item = begin + (inside ? threadIdx.y : threadIdx.x); item < end;
         item += inside ? blockDim.y : blockDim.x)
      weigh_run<kS, kI, kPack>(p, tile.taps, place_of(p, item), x, y, load, sums);
  }
  if constexpr (kPack == 1)
    if (!inside) return add_lanes(w, tile, sums, shared);
  add_rows(w, tile, sums, shared);
}

template <class T, TapTile kTile, int kPack>
void launch(const Conv& conv, const WeightWindows& plan, float* workspace, Stream stream) {
  constexpr int kS = slide_of(kTile), kI = inner_of(kTile);
  const DepthwiseWindows& p = plan.windows;
  const int sums = kS * kI * p.lanes * p.rows * kPack;  // of a warp where lanes run along items
  const size_t bytes = static_cast<size_t>(p.channels_inside ? sums : sums / 32) * sizeof(float);
  start(grad_weight_kernel<T, kS, kI, kPack>, plan.blocks, {p.lanes, p.rows}, bytes, stream, plan,
        conv.x.data, conv.y.data, workspace);
}

template <class T, int kPack>
void launch_tile(const Conv& conv, const WeightWindows& plan, float* workspace, Stream stream) {
  with_one_of<TapTile::k3x3, TapTile::k4x4, TapTile::k1x4, TapTile::k1x8>(
      plan.tile, [&](auto tile) { launch<T, tile(), kPack>(conv, plan, workspace, stream); });
}

}  // namespace

void windows_grad_weight(const Conv& conv, const WeightWindows& plan, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2)
      if (plan.windows.pack == 2) return launch_tile<T, 2>(conv, plan, workspace, stream);
    launch_tile<T, 1>(conv, plan, workspace, stream);
  });
  add_parts(conv, plan.parts,
            plan.windows.channels_inside ? PartOrder::kChannelsOfTap : PartOrder::kTapsOfChannel, {},
            workspace, stream);
}

}  // namespace retrograd::kernels::cuda
