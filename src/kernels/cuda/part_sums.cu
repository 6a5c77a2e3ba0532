// SPDX-License-Identifier: Apache-2.0
// w[i] = Σ_part sums[part][i]. 32 weights a block; 8 or 32 threads share the parts of a weight, since one
// thread would wait for memory hundreds of times in a row.
#include <type_traits>

#include "kernels/cuda/part_repair.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWeights = 32;  // of a block

struct Parts {
  Conv conv;
  int64_t weights, count;  // weights: sums of a part
  PartOrder order;
  PartRows rows;

  __device__ int64_t taps() const { return conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel; }
  // Whether sum i is one of a weight.
  __device__ bool has(int64_t i) const {
    if (i >= weights || order != PartOrder::kSixteens) return i < weights;
    return i % 16 / conv.x_channels == i / 16 % 16 / conv.x_channels;
  }
  __device__ Index5 at(int64_t i) const {
    if (order == PartOrder::kSixteens) {
      const int64_t tap = i / 256 % 9;
      return {i / 2304 * 16 + i / 16 % 16, i % 16 % conv.x_channels, 0, tap / 3, tap % 3};
    }
    const int64_t kw = conv.axes[2].kernel, kh = conv.axes[1].kernel, channels = weights / taps();
    const bool by_channel = order == PartOrder::kTapsOfChannel;
    const int64_t channel = by_channel ? i / taps() : i % channels;
    const int64_t tap = by_channel ? i % taps() : i / channels;
    return {channel / conv.x_channels, channel % conv.x_channels, tap / (kw * kh), tap / kw % kh, tap % kw};
  }
  __device__ int64_t number(const Index5& at) const {
    const int64_t tap = (at.d * conv.axes[1].kernel + at.h) * conv.axes[2].kernel + at.w;
    if (order == PartOrder::kSixteens) {
      const int64_t o = at.n % 16, c = o / conv.x_channels * conv.x_channels + at.c;
      return ((at.n / 16 * 9 + tap) * 16 + o) * 16 + c;
    }
    const int64_t channel = at.n * conv.x_channels + at.c;
    return order == PartOrder::kTapsOfChannel ? channel * taps() + tap : tap * (weights / taps()) + channel;
  }
};

// The block's warps share what is suspect; every warp holds all weights of the block.
__device__ __noinline__ void repair(const Parts& p, bool suspect, const Index5& at, const float* sums) {
  repair_weights(p.conv, p.rows, p.count, p.weights, suspect, at, static_cast<int>(threadIdx.y),
                 static_cast<int>(blockDim.y), [&](const Index5& index) { return sums + p.number(index); });
}

template <int kThreads>                                               // that share a weight
__global__ void __launch_bounds__(kWeights* kThreads, 32 / kThreads)  // whatever the formula wants
    add_parts_kernel(const __grid_constant__ Parts p, const float* sums) {
  __shared__ float shared[kThreads][kWeights];
  const int64_t i = blockIdx.x * int64_t{kWeights} + threadIdx.x;
  const bool there = p.has(i);
  float sum = 0;
  if (there) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < p.count; part += kThreads) sum += sums[part * p.weights + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  bool suspect = false;
  if (threadIdx.y == 0 && there) {
    for (int y = 1; y < kThreads; ++y) sum += shared[y][threadIdx.x];
    shared[0][threadIdx.x] = sum;
    store_any(p.conv.w.dtype, p.conv.w.data, offset_of(p.conv.w, p.at(i)), sum);
    suspect = isnan(sum);
  }
  if (__syncthreads_or(suspect)) repair(p, isnan(shared[0][threadIdx.x]), p.at(i), sums);
}

}  // namespace

void add_parts(const Conv& conv, int64_t parts, PartOrder order, const PartRows& rows, const float* sums,
               Stream stream) {
  const int64_t x_channels = order == PartOrder::kSixteens ? 16 : conv.x_channels;
  const int64_t weights = conv.groups * conv.y_channels * x_channels * conv.axes[0].kernel *
                          conv.axes[1].kernel * conv.axes[2].kernel;
  const auto blocks = static_cast<unsigned>((weights + kWeights - 1) / kWeights);
  const auto launch = [&](auto threads) {
    constexpr int kThreads = decltype(threads)::value;
    add_parts_kernel<kThreads>
        <<<blocks, dim3(kWeights, kThreads), 0, stream>>>({conv, weights, parts, order, rows}, sums);
  };
  if (parts <= 64) return launch(std::integral_constant<int, 8>{});
  launch(std::integral_constant<int, 32>{});
}

}  // namespace retrograd::kernels::cuda
