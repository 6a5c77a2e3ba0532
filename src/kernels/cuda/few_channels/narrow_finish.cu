// SPDX-License-Identifier: Apache-2.0
// w[i] = Σ_part sums[part][i]. 32 weights a block; eight threads share the parts of a weight, since one
// thread would wait for memory hundreds of times in a row.
#include "kernels/cuda/few_channels/narrow_finish.h"
#include "kernels/cuda/part_repair.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kLanes = 32, kLines = 8;

__device__ __noinline__ void repair(const Conv& conv, int64_t weights, int parts, const PartRows& rows,
                                    bool suspect, const Index5& at, const float* sums) {
  const int64_t kw = conv.axes[2].kernel, kh = conv.axes[1].kernel;
  repair_weights(
      conv, rows, parts, weights, suspect, at, static_cast<int>(threadIdx.x) / kLanes, kLines,
      [&](const Index5& i) { return sums + ((i.n * conv.x_channels + i.c) * kh + i.h) * kw + i.w; });
}

__global__ void __launch_bounds__(kLanes* kLines, 4)  // whatever the formula wants
    add_parts_kernel(const __grid_constant__ Conv conv, int64_t weights, int parts,
                     const __grid_constant__ PartRows rows, const float* sums) {
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
  const int64_t kw = conv.axes[2].kernel, kh = conv.axes[1].kernel;
  const Index5 at{i / kw / kh / conv.x_channels, i / kw / kh % conv.x_channels, 0, i / kw % kh, i % kw};
  bool suspect = false;
  if (line == 0 && i < weights) {
    for (int l = 1; l < kLines; ++l) sum += shared[l][lane];
    shared[0][lane] = sum;
    store_any(conv.w.dtype, conv.w.data, offset_of(conv.w, at), sum);
    suspect = isnan(sum);
  }
  if (__syncthreads_or(suspect)) repair(conv, weights, parts, rows, isnan(shared[0][lane]), at, sums);
}

}  // namespace

void add_parts(const Conv& conv, int parts, const PartRows& rows, const float* sums, Stream stream) {
  const int64_t weights =
      conv.groups * conv.y_channels * conv.x_channels * conv.axes[1].kernel * conv.axes[2].kernel;
  add_parts_kernel<<<static_cast<unsigned>((weights + kLanes - 1) / kLanes), kLanes * kLines, 0, stream>>>(
      conv, weights, parts, rows, sums);
}

}  // namespace retrograd::kernels::cuda
