// SPDX-License-Identifier: Apache-2.0
// w[i] = Σ_part sums[part][i]. 32 weights a block; 8 or 32 threads share the parts of a weight, since one
// thread would wait for memory hundreds of times in a row.
#include "base/checked.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/part_repair.cuh"
#include "kernels/cuda/part_sums.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWeights = 32;  // of a block

struct Parts {
  Conv conv;
  PartSums sums;
  int64_t count;
  PartRows rows;
};

// The block's warps share what is suspect; every warp holds all weights of the block.
__device__ __noinline__ void repair(const Parts& p, bool suspect, const Index5& at, const float* sums) {
  repair_weights(p.conv, p.rows, p.count, p.sums.count, suspect, at, static_cast<int>(threadIdx.y),
                 static_cast<int>(blockDim.y),
                 [&](const Index5& index) { return sums + p.sums.number(index); });
}

template <int kThreads>                                               // that share a weight
__global__ void __launch_bounds__(kWeights* kThreads, 32 / kThreads)  // whatever the formula wants
    add_parts_kernel(const __grid_constant__ Parts p, const float* sums) {
  __shared__ float shared[kThreads][kWeights];
  const int64_t i = blockIdx.x * int64_t{kWeights} + threadIdx.x;
  const bool there = p.sums.has(i);
  float sum = 0;
  if (there) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < p.count; part += kThreads) sum += sums[part * p.sums.count + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  bool suspect = false;
  if (threadIdx.y == 0 && there) {
    for (int y = 1; y < kThreads; ++y) sum += shared[y][threadIdx.x];
    shared[0][threadIdx.x] = sum;
    store_any(p.conv.w.dtype, p.conv.w.data, offset_of(p.conv.w, p.sums.at(i)), sum);
    suspect = isnan(sum);
  }
  if (__syncthreads_or(suspect)) repair(p, isnan(shared[0][threadIdx.x]), p.sums.at(i), sums);
}

}  // namespace

void add_parts(const Conv& conv, int64_t parts, PartOrder order, const PartRows& rows, const float* sums,
               Stream stream) {
  const Parts p{conv, part_sums(conv, order), parts, rows};
  const int64_t blocks = ceil_div(p.sums.count, kWeights);
  if (parts <= 64) return start(add_parts_kernel<8>, blocks, {kWeights, 8}, 0, stream, p, sums);
  start(add_parts_kernel<32>, blocks, {kWeights, 32}, 0, stream, p, sums);
}

}  // namespace retrograd::kernels::cuda
