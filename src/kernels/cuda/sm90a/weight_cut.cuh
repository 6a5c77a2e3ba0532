// SPDX-License-Identifier: Apache-2.0
// How wgmma_weight's blocks are cut, and what lies in a stage: 64 pixels of y, a group of 64 channels after
// the other, then as many of x for each of its groups, and those that shifts reach.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense_weight/wgmma_weight.h"

namespace retrograd::kernels::cuda::wweight {

inline constexpr int kTerms = 64;              // places of a stage
inline constexpr int kRow = 128, kWidth = 64;  // bytes and channels of a place in a group

// kWarpgroups of which kDown have y channels of their own, kSub groups of x channels each. kTaps of every
// group that are shifts of one another. kMany: groups of a block may belong to different rows of taps.
template <int kWarpgroups_, int kDown_, int kSub_, int kTaps_, int kStages_, bool kMany_>
struct Cut {
  static constexpr int kWarpgroups = kWarpgroups_, kDown = kDown_, kSub = kSub_, kTaps = kTaps_,
                       kStages = kStages_;
  static constexpr bool kMany = kMany_;
  static constexpr int kThreads = 128 * (kWarpgroups + 1), kGroups = kWarpgroups / kDown * kSub;
  static constexpr int kColumns = kWidth * (kTaps == 1 ? kSub : kTaps), kProducts = kTaps == 1 ? 1 : kSub;
  static constexpr uint32_t kYBytes = kDown * kTerms * kRow;
  // Of a thread that asks for copies, and of one that multiplies.
  static constexpr int kFewRegisters = 40, kManyRegisters = kWarpgroups == 2 ? 232 : 152;
};

template <class C>
__host__ __device__ uint32_t stage_bytes(const WeightWalk& p) {
  return C::kYBytes + static_cast<uint32_t>(C::kGroups * p.x_rows * kRow);
}

// Which results a block makes, over which part of the walk.
struct Block {
  int unit, m0, first_group, steps;
  uint32_t part, first_step;
};
template <class C>
__device__ Block block_of(const WeightWalk& p) {
  Block block;
  block.unit = 0;
  while (block.unit + 1 < p.unit_count && blockIdx.x >= p.units[block.unit + 1].first_block) ++block.unit;
  const WeightUnit& unit = p.units[block.unit];
  const uint32_t number = blockIdx.x - unit.first_block, tile = number % unit.tiles;
  block.part = number / unit.tiles;
  block.m0 = static_cast<int>(tile % p.across_m) * C::kDown * 64;
  block.first_group = static_cast<int>(tile / p.across_m) * C::kGroups;
  block.first_step = block.part * unit.part_steps;
  block.steps = block.first_step < unit.steps
                    ? static_cast<int>(min(unit.part_steps, unit.steps - block.first_step))
                    : 0;
  return block;
}

}  // namespace retrograd::kernels::cuda::wweight
