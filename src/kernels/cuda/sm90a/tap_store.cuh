// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup to where they belong, 32 columns of a row at a time: 16-bit results, 16 bytes a thread,
// or FP32 of a part. A block stores its own, or clusters of blocks first add theirs in the order of ranks,
// out of each other's shared memory; a block alone does, too, where it stores single elements: that is rare,
// and much code when it comes from registers.
#pragma once

#include "kernels/cuda/dense/cluster.cuh"
#include "kernels/cuda/sm90a/tap_loads.cuh"

namespace retrograd::kernels::cuda::tap {

struct Target {
  void* results;       // null: parts
  int64_t strides[4];  // TapPlan::strides
  bool vectors;        // results are aligned
  float* parts;
};

__device__ inline uint32_t pack(const float2& pair, __half) {
  const __half2 both = __floats2half2_rn(pair.x, pair.y);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline uint32_t pack(const float2& pair, __nv_bfloat16) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(pair.x, pair.y);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// Four lanes side by side hold four words each; lane q gets the q-th of all four, in the order of lanes.
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

// Rows of a tile where they go. store: this thread's columns of four times eight (wgmma.cuh), from `column`
// of the row on; whole warps call it.
class PartLine {
 public:
  __device__ PartLine(const TapWalk& p, const Block& block, const Target& target, int o)
      : to_(target.parts + block.part * p.weights + (int64_t{o} * p.taps.divisor + block.tap) * p.x_channels +
            block.n0),
        columns_(o < p.rows ? p.x_channels - block.n0 : 0) {}
  __device__ void store(int column, const float2 (&pairs)[4]) const {
    const int c = column + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (c + i * 8 < columns_) *reinterpret_cast<float2*>(to_ + c + i * 8) = pairs[i];
  }

 private:
  float* to_;
  int columns_;  // that are there; none in rows that are not
};

template <class E, bool kVectors>
class ResultLine {
 public:
  __device__ ResultLine(const TapWalk& p, const Block& block, const Target& target, int o)
      : columns_(o < p.rows ? p.x_channels - block.n0 : 0) {
    auto kw = static_cast<uint32_t>(block.tap);
    uint32_t kh = p.axes[2].by_kernel.split(kw);
    const uint32_t kd = p.axes[1].by_kernel.split(kh);
    to_ = static_cast<uint16_t*>(target.results) + o * target.strides[0] + kd * target.strides[1] +
          kh * target.strides[2] + kw * target.strides[3] + block.n0;
  }
  __device__ void store(int column, const float2 (&pairs)[4]) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(pairs[i], E{});
    exchange(words);
    const int c = column + static_cast<int>(threadIdx.x) % 4 * 8;
    if (c >= columns_) return;
    if constexpr (kVectors) {
      *reinterpret_cast<uint4*>(to_ + c) = uint4{words[0], words[1], words[2], words[3]};
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) to_[c + i] = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
    }
  }

 private:
  uint16_t* to_;
  int columns_;
};

template <class Line, int kColumns>
__device__ void store_own(const TapWalk& p, const Block& block, const Target& target, int row,
                          const float (&sums)[kColumns / 2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Line line(p, block, target, row + half * 8);
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 4) {
      float2 pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = {sums[(j + i) * 4 + half * 2], sums[(j + i) * 4 + half * 2 + 1]};
      line.store(j * 8, pairs);
    }
  }
}

// Stages are free when this begins. Blocks of a cluster share what is stored.
template <class Line, class C, int kColumns>
__device__ void store_shared(const TapWalk& p, const Block& block, const Target& target, int row,
                             const float (&sums)[kColumns / 2], uint32_t base) {
  constexpr int kPitch = C::kThreads * 8;  // bytes from pair to pair of a thread
  static_assert(kColumns / 4 * kPitch <= C::kStages * C::kStageBytes);
  const uint32_t mine = base + threadIdx.x * 8;
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i)
    hopper::store_pair(mine + i * kPitch, {sums[i * 2], sums[i * 2 + 1]});
  hopper::sync_cluster();
  const auto cluster = static_cast<int>(p.cluster.divisor);
#pragma unroll 1
  for (int unit = block.rank; unit < kColumns / 16; unit += cluster) {
    const int half = unit % 2, j = unit / 2 * 4;
    float2 pairs[4] = {};
#pragma unroll 1
    for (int rank = 0; rank < cluster; rank += 2) {
      float2 got[2][4] = {};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (rank + r >= cluster) continue;
        const uint32_t from =
            hopper::address_in(mine, rank + r) + static_cast<uint32_t>((j * 2 + half) * kPitch);
#pragma unroll
        for (int i = 0; i < 4; ++i) got[r][i] = hopper::load_pair_of_cluster(from + i * 2 * kPitch);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) pairs[i].x += got[r][i].x, pairs[i].y += got[r][i].y;
    }
    Line(p, block, target, row + half * 8).store(j * 8, pairs);
  }
  // Nobody leaves before all have read.
  hopper::sync_cluster();
}

}  // namespace retrograd::kernels::cuda::tap
