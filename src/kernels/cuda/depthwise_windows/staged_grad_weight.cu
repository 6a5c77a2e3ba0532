// SPDX-License-Identifier: Apache-2.0
// w[o,i,t] = Σ_{n,p} x[n,i,position(p,t)] · y[n,o,p]
//
// staged_plan.h says how it is cut. Bytes: x goes to shared memory once a block, y is read where it lies, by
// each warp that has other taps. Reads for 3x3 and eight pixels: 8 of y and 30 of x for 72 products. Sums of
// threads are added in a fixed tree, those of warps in order, and a second kernel adds the parts and repairs
// NaN.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/depthwise_windows/staged.cuh"
#include "kernels/cuda/depthwise_windows/staged_plan.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kSums = kTapRows * kTapColumns;

template <class T, int kV>
__global__ void __launch_bounds__(32 * kWeightWarps, 3)
    weight_kernel(const __grid_constant__ StagedWeights w, const T* x, const T* y, int phase, float* parts) {
  constexpr int kMask = 16 / static_cast<int>(sizeof(T)) - 1;
  extern __shared__ __align__(16) float shared[];
  T* const tile = reinterpret_cast<T*>(shared);
  const Staged& p = w.staged;
  const WeightBlock block = weight_block(w, blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int of_block = static_cast<int>(w.by_warps.quotient(static_cast<uint32_t>(warp)));
  const int share = warp - of_block * w.warps_a_tile;  // of the items of a tile
  const TapBox taps = tap_box(w, block.first_tile + of_block);
  const int64_t plane = int64_t{p.d.results} * p.h.results * p.w.results;
  const int64_t image_pitch = plane * w.y_channels;
  const auto load = [](const T* address) { return to_float(*address); };
  const auto load_y = [](const T* address) { return to_float(__ldg(address)); };

  const auto stage = [&](uint32_t box) {
    if (box < block.end)
      stage_rows(p, weight_box(w, block, box), phase, x, tile + (box - block.begin) % 2 * w.box_elements);
    close_copies();
  };
  const auto first = static_cast<uint32_t>(share * 32 + lane);
  const auto step = static_cast<uint32_t>(w.warps_a_tile * 32);

  float sums[kTapRows][kTapColumns] = {};
  stage(block.begin);
  for (uint32_t box = block.begin; box < block.end; ++box) {
    stage(box + 1);
    const StagedBlock b = weight_box(w, block, box);
    const T* const of_box = tile + (box - block.begin) % 2 * w.box_elements;
    const T* const y_of_box = y + b.plane * image_pitch + block.y_channel * plane;
    // y of the next item is on its way while one is added.
    float of_y[kV], next_y[kV];
    StagedItem next = staged_item<kV>(p, b, first);
    load_weight_y<kV>(p, b, next, y_of_box, image_pitch, load_y, next_y);
    wait_for_copies<1>();
    __syncthreads();
    if (taps.rows > 0)
      for (uint32_t i = first; i < p.items; i += step) {
        const StagedItem item = next;
#pragma unroll
        for (int v = 0; v < kV; ++v) of_y[v] = next_y[v];
        next = staged_item<kV>(p, b, i + step);
        if (i + step < p.items) load_weight_y<kV>(p, b, next, y_of_box, image_pitch, load_y, next_y);
        if (item.there) weigh_staged<kV>(p, b, item, taps, of_y, of_box, phase, kMask, load, sums);
      }
    __syncthreads();  // before the box after the next is staged
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
    const float sum = warp_sum(sums[k / kTapColumns][k % kTapColumns]);
    if (lane == 0) shared[warp * kSums + k] = sum;
  }
  __syncthreads();
  if (share != 0 || lane >= kSums) return;
  const int j = lane / kTapColumns, i = lane % kTapColumns;
  if (j >= taps.rows || i >= taps.columns) return;
  float sum = shared[warp * kSums + lane];
  for (int other = 1; other < w.warps_a_tile; ++other) sum += shared[(warp + other) * kSums + lane];
  parts[int64_t{block.part} * w.weights + staged_weight_number(w, block, taps, j, i)] = sum;
}

template <class T, int kV>
void launch(const Conv& conv, const StagedWeightPlan& plan, float* workspace, Stream stream) {
  const auto bytes = static_cast<int>(plan.shared);
  const auto phase = static_cast<int>(reinterpret_cast<uintptr_t>(conv.x.data) % 16 / sizeof(T));
  start(weight_kernel<T, kV>, plan.blocks, plan.threads, bytes, stream, plan.work, conv.x.data, conv.y.data,
        phase, workspace);
}

}  // namespace

void staged_grad_weight(const Conv& conv, const StagedWeightPlan& plan, float* workspace, Stream stream) {
  with_type(conv.x.dtype, [&](auto type) {
    using T = decltype(type);
    if (plan.work.staged.slide == 8) return launch<T, 8>(conv, plan, workspace, stream);
    launch<T, 4>(conv, plan, workspace, stream);
  });
  add_parts(conv, plan.parts, PartOrder::kTapsOfChannel, {}, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
