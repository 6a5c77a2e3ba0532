// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup to where they belong, 32 columns of a row at a time: 16-bit results, 16 bytes a thread,
// or FP32 of a part. A block stores its own, or clusters of blocks first add theirs in the order of ranks,
// out of each other's shared memory; a block alone does, too, where it stores single elements: that is rare,
// and much code when it comes from registers.
#pragma once

#include "kernels/cuda/dense/cluster.cuh"
#include "kernels/cuda/sm90a/result_rows.cuh"
#include "kernels/cuda/sm90a/tap_loads.cuh"

namespace retrograd::kernels::cuda::tap {

// Rows of a tile where they go. store: this thread's columns of four times eight (wgmma.cuh), from `column`
// of the row on; whole warps call it. Rows are y channels of a group.
__device__ inline int64_t channel_of(const TapWalk& p, const Block& block, int row) {
  return int64_t{block.group} * p.rows + row;
}
class PartLine : public PartRow {
 public:
  __device__ PartLine(const TapWalk& p, const Block& block, const ResultTarget& target, int o)
      : PartRow(target.parts + block.part * p.weights +
                    (channel_of(p, block, o) * p.taps.divisor + block.tap) * p.x_channels + block.n0,
                o < p.rows ? p.x_channels - block.n0 : 0) {}
};

template <class E, bool kVectors>
class ResultLine : public ResultRow<E, kVectors> {
 public:
  __device__ ResultLine(const TapWalk& p, const Block& block, const ResultTarget& target, int o)
      : ResultRow<E, kVectors>(target.row(channel_of(p, block, o), tap_of(p, block.tap)) + block.n0,
                               o < p.rows ? p.x_channels - block.n0 : 0) {}

 private:
  __device__ static int3 tap_of(const TapWalk& p, int tap) {
    auto kw = static_cast<uint32_t>(tap);
    uint32_t kh = p.axes[2].by_kernel.split(kw);
    const uint32_t kd = p.axes[1].by_kernel.split(kh);
    return {static_cast<int>(kd), static_cast<int>(kh), static_cast<int>(kw)};
  }
};

template <class Line, int kColumns>
__device__ void store_own(const TapWalk& p, const Block& block, const ResultTarget& target, int row,
                          const float (&sums)[kColumns / 2]) {
  store_rows<kColumns>(sums, [&](int further) { return Line(p, block, target, row + further); });
}

// Stages are free when this begins. Blocks of a cluster share what is stored.
template <class Line, class C, int kColumns>
__device__ void store_shared(const TapWalk& p, const Block& block, const ResultTarget& target, int row,
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
