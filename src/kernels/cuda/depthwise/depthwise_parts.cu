// SPDX-License-Identifier: Apache-2.0
// Where parts are many, several threads share those of a weight: loads one after another take too long.
#include <type_traits>

#include "kernels/cuda/depthwise/depthwise_parts.h"
#include "kernels/cuda/formulas.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWeights = 32;  // of a block

template <int kThreads>  // that share a weight
__global__ void __launch_bounds__(kWeights* kThreads)
    add_parts_kernel(const __grid_constant__ Conv conv, int64_t weights, int64_t parts, PartOrder order,
                     const float* sums) {
  __shared__ float shared[kThreads][kWeights];
  const int64_t i = blockIdx.x * int64_t{kWeights} + threadIdx.x;
  float sum = 0;
  if (i < weights) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < parts; part += kThreads) sum += sums[part * weights + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= weights) return;
  for (int y = 1; y < kThreads; ++y) sum += shared[y][threadIdx.x];
  const int64_t kw = conv.axes[2].kernel, kh = conv.axes[1].kernel, taps = conv.axes[0].kernel * kh * kw;
  const bool by_channel = order == PartOrder::kTapsOfChannel;
  const int64_t channels = weights / taps;
  const int64_t channel = by_channel ? i / taps : i % channels;
  const int64_t tap = by_channel ? i % taps : i / channels;
  const Index5 at{channel / conv.x_channels, channel % conv.x_channels, tap / (kw * kh), tap / kw % kh,
                  tap % kw};
  if (!isfinite(sum)) sum = grad_weight_sum(conv, at, 0, 1);
  store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
}

}  // namespace

void add_parts(const Conv& conv, int64_t parts, PartOrder order, const float* sums, Stream stream) {
  const int64_t weights = conv.groups * conv.y_channels * conv.x_channels * conv.axes[0].kernel *
                          conv.axes[1].kernel * conv.axes[2].kernel;
  const auto blocks = static_cast<unsigned>((weights + kWeights - 1) / kWeights);
  const auto launch = [&](auto threads) {
    constexpr int kThreads = decltype(threads)::value;
    add_parts_kernel<kThreads>
        <<<blocks, dim3(kWeights, kThreads), 0, stream>>>(conv, weights, parts, order, sums);
  };
  if (parts <= 8) return launch(std::integral_constant<int, 1>{});
  if (parts <= 64) return launch(std::integral_constant<int, 8>{});
  launch(std::integral_constant<int, 32>{});
}

}  // namespace retrograd::kernels::cuda
