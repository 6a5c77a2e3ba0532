// SPDX-License-Identifier: Apache-2.0
// w[i] = Σ_part sums[part][i]. 32 weights a block; eight threads share the parts of a weight, since one
// thread would wait for memory hundreds of times in a row.
#include "kernels/cuda/few_channels/narrow_finish.h"
#include "kernels/cuda/formulas.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kLanes = 32, kLines = 8;

__global__ void __launch_bounds__(kLanes* kLines)
    add_parts_kernel(const __grid_constant__ Conv conv, int64_t weights, int parts, const float* sums) {
  __shared__ float shared[kLines][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, line = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t i = blockIdx.x * int64_t{kLanes} + lane;
  float sum = 0;
  if (i < weights) {
#pragma unroll 8
    for (int part = line; part < parts; part += kLines) sum += sums[part * weights + i];
  }
  shared[line][lane] = sum;
  __syncthreads();
  if (line > 0 || i >= weights) return;
  for (int l = 1; l < kLines; ++l) sum += shared[l][lane];
  const int64_t kw = conv.axes[2].kernel, kh = conv.axes[1].kernel;
  const Index5 at{i / kw / kh / conv.x_channels, i / kw / kh % conv.x_channels, 0, i / kw % kh, i % kw};
  if (!isfinite(sum)) sum = grad_weight_sum(conv, at, 0, 1);
  store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
}

}  // namespace

void add_parts(const Conv& conv, int parts, const float* sums, Stream stream) {
  const int64_t weights =
      conv.groups * conv.y_channels * conv.x_channels * conv.axes[1].kernel * conv.axes[2].kernel;
  add_parts_kernel<<<static_cast<unsigned>((weights + kLanes - 1) / kLanes), kLanes * kLines, 0, stream>>>(
      conv, weights, parts, sums);
}

}  // namespace retrograd::kernels::cuda
