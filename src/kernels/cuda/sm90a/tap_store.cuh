// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup to where they belong: 16-bit results straight to w, 16 bytes a thread, or FP32 to a
// part.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/sm90a/tap_loads.cuh"

namespace retrograd::kernels::cuda::tap {

struct Target {
  void* w;             // null: parts
  int64_t strides[4];  // TapPlan::strides
  bool vectors;        // w is aligned
  float* parts;
};

__device__ inline uint32_t pack(float low, float high, __half) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline uint32_t pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// Four lanes side by side hold word i of four words each; lane q comes by all words of number q, in the order
// of lanes: a transpose of 4 x 4.
__device__ inline void exchange(uint32_t (&v)[4]) {
  const bool odd = (threadIdx.x & 1u) != 0, high = (threadIdx.x & 2u) != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? v[i] : v[i + 1], 1);
    (odd ? v[i] : v[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, high ? v[i] : v[i + 2], 2);
    (high ? v[i] : v[i + 2]) = got;
  }
}

// row: the first of this thread's two, eight apart; whole warps call it.
template <class E, int kColumns>
__device__ void store_results(const TapWalk& p, const Block& block, const Target& target, int row,
                              const float (&sums)[kColumns / 2]) {
  const int hw = p.axes[1].kernel * p.axes[2].kernel, lane = static_cast<int>(threadIdx.x) % 4;
  E* const w = static_cast<E*>(target.w) + block.tap / hw * target.strides[1] +
               block.tap / p.axes[2].kernel % p.axes[1].kernel * target.strides[2] +
               block.tap % p.axes[2].kernel * target.strides[3];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int o = row + half * 8;
    E* const line = w + o * target.strides[0];
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 4) {
      uint32_t v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v[i] = pack(sums[(j + i) * 4 + half * 2], sums[(j + i) * 4 + half * 2 + 1], E{});
      exchange(v);
      const int c = block.n0 + (j + lane) * 8;
      if (o >= p.rows || c >= p.columns) continue;
      if (target.vectors) {
        *reinterpret_cast<uint4*>(line + c) = uint4{v[0], v[1], v[2], v[3]};
        continue;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
        reinterpret_cast<uint16_t*>(line)[c + i] = static_cast<uint16_t>(v[i / 2] >> i % 2 * 16);
    }
  }
}

template <int kColumns>
__device__ void store_part(const TapWalk& p, const Block& block, float* parts, int row,
                           const float (&sums)[kColumns / 2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int o = row + half * 8;
    if (o >= p.rows) continue;
    const int c = block.n0 + static_cast<int>(threadIdx.x) % 4 * 2;
    float* const line = parts + block.part * p.weights + (int64_t{o} * p.taps + block.tap) * p.x_channels + c;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      if (c + j * 8 < p.x_channels)
        *reinterpret_cast<float2*>(line + j * 8) = float2{sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]};
  }
}

}  // namespace retrograd::kernels::cuda::tap
