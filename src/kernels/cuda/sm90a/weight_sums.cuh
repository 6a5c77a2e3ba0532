// SPDX-License-Identifier: Apache-2.0
// What a warpgroup of wgmma_weight multiplies and keeps.
#pragma once

#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/sm90a/result_rows.cuh"
#include "kernels/cuda/sm90a/weight_cut.cuh"

namespace retrograd::kernels::cuda::wweight {

template <class E, class C>
class Sums {
 public:
  __device__ Sums(const WeightWalk& p, int warpgroup, uint32_t base)
      : down_(warpgroup % C::kDown), across_(warpgroup / C::kDown), group_bytes_(p.x_rows * kRow) {
    // Taps are shifts: the same rows, begun so many places later. Chunks are permuted by their address, so a
    // factor may begin at any row.
    column_step_ = C::kTaps == 1 ? group_bytes_ : static_cast<uint32_t>(p.dilation[2]) * kRow;
    a_at_ = base + down_ * (kTerms * kRow);
    b_at_ = base + C::kYBytes + across_ * C::kSub * group_bytes_;
#pragma unroll
    for (int i = 0; i < C::kProducts; ++i)
#pragma unroll
      for (int j = 0; j < C::kColumns / 2; ++j) sums_[i][j] = 0;
  }

  __device__ void add(uint32_t stage) {
    hopper::fence_sums();
#pragma unroll
    for (int k = 0; k < kTerms; k += 16) {
      const uint64_t a = hopper::factor(a_at_ + stage + k * kRow, 1024);
#pragma unroll
      for (int i = 0; i < C::kProducts; ++i)
        hopper::multiply<E, C::kColumns, true, true>(
            sums_[i], a, hopper::factor(b_at_ + stage + k * kRow + i * group_bytes_, column_step_), true);
    }
    hopper::close_products();
  }

  __device__ void store(const WeightWalk& p, const Block& block, int thread,
                        const ResultTarget& target) const {
    if constexpr (C::kTaps == 1) {
      if (target.results != nullptr) {
        if (target.vectors) return store_whole<true>(p, block, thread, target);
        return store_whole<false>(p, block, thread, target);
      }
    }
    store_part(p, block, thread, target.parts);
  }

 private:
  // Where the weights go, of the one tap of a block.
  template <bool kVectors>
  __device__ void store_whole(const WeightWalk& p, const Block& block, int thread,
                              const ResultTarget& target) const {
    const int tap = p.units[block.unit].first_row, line = tap / p.kernel[2];
    const int3 at{line / p.kernel[1], line % p.kernel[1], tap % p.kernel[2]};
    const int row0 = block.m0 + down_ * 64 + thread / 32 * 16 + thread % 32 / 4;
    const int c0 = (block.first_group + across_ * C::kSub) * kWidth;
    store_rows<C::kColumns>(sums_[0], [&](int further) {
      const int o = row0 + further;
      return ResultRow<E, kVectors>(target.row(o, at) + c0, o < p.rows ? p.x_channels - c0 : 0);
    });
  }

  // To [part][y channel][tap][x channel].
  __device__ void store_part(const WeightWalk& p, const Block& block, int thread, float* parts) const {
    const WeightUnit& unit = p.units[block.unit];
    float* const out = parts + block.part * p.weights;
    const int lane = thread % 32, row0 = block.m0 + down_ * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < C::kProducts; ++i)
#pragma unroll
      for (int g = 0; g < C::kColumns / kWidth; ++g) {
        const int group = block.first_group + across_ * C::kSub + (C::kTaps == 1 ? g : i);
        if (group >= unit.rows * p.x_groups) continue;
        const int row = unit.first_row + group / p.x_groups, tap = C::kTaps == 1 ? row : row * C::kTaps + g;
        const int c0 = group % p.x_groups * kWidth + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int o = row0 + half * 8;
          if (o >= p.rows) continue;
          float* const to = out + (static_cast<int64_t>(o) * p.taps + tap) * p.x_channels + c0;
#pragma unroll
          for (int j = 0; j < kWidth / 8; ++j)
            if (c0 + j * 8 < p.x_channels)
              *reinterpret_cast<float2*>(to + j * 8) =
                  float2{sums_[i][g * 32 + j * 4 + half * 2], sums_[i][g * 32 + j * 4 + half * 2 + 1]};
        }
      }
  }

  float sums_[C::kProducts][C::kColumns / 2];
  int down_, across_;
  uint32_t group_bytes_, column_step_, a_at_, b_at_;
};

}  // namespace retrograd::kernels::cuda::wweight
