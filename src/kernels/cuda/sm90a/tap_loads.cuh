// SPDX-License-Identifier: Apache-2.0
// How tap_weight's blocks are cut, what lies in a stage, and how it comes there: 32 pixels of y, a group of
// 64 channels after the other, then the same of x. Threads copy 16 bytes each, so that pixels may lie
// anywhere.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/dense_weight/tap_places.h"

namespace retrograd::kernels::cuda::tap {

inline constexpr int kRow = 128, kWidth = 64;    // bytes and channels of a place in a group
inline constexpr int kGroup = kTapTerms * kRow;  // bytes of a group

// kDown warpgroups of 64 y channels each, kBlocks blocks a multiprocessor.
template <int kDown_, int kN_, int kStages_, int kBlocks_>
struct Cut {
  static constexpr int kDown = kDown_, kN = kN_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kM = kDown * kWidth, kThreads = kDown * 128;
  static constexpr int kYBytes = kDown * kGroup, kStageBytes = kYBytes + kN / kWidth * kGroup;
  static constexpr int kAhead = kStages - 2;  // steps that are copied before they are multiplied
};

// Which results a block makes; of which part, and which share of the part.
struct Block {
  int rank, part, n0, tap, group, m0;  // m0: of the group
};
template <class C>
__device__ Block block_of(const TapWalk& p) {
  uint32_t rank = blockIdx.x;
  uint32_t part = p.cluster.split(rank);
  uint32_t n = p.parts.split(part);
  uint32_t tap = p.across_n.split(n);
  uint32_t m = p.taps.split(tap);
  const uint32_t group = p.across_m.split(m);
  return {static_cast<int>(rank), static_cast<int>(part),  static_cast<int>(n) * C::kN,
          static_cast<int>(tap),  static_cast<int>(group), static_cast<int>(m) * C::kM};
}

// What a thread copies of one factor: a chunk of every kPass-th place of a step.
template <int kThreads, int kChunks>
struct Lane {
  static constexpr int kPass = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0 && kPass % 4 == 0);
  int first = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
  // Chunks of eight places are permuted as warpgroup products expect it.
  __device__ uint32_t target() const {
    return static_cast<uint32_t>(chunk / 8 * kGroup + first * kRow + (chunk % 8 ^ first % 8) * 16);
  }
  // From there to the place that is i further; an odd number of fours turns a bit of the permutation over.
  __device__ static uint32_t further(uint32_t target, int i) {
    return (target ^ (i % 8 == 0 ? 0u : 64u)) + static_cast<uint32_t>(i * kRow);
  }
  __device__ bool has(int i) const { return kTapTerms % kPass == 0 || first + i < kTapTerms; }
};

// The places of the steps under way, y's and x's; −1: past the end, zeros on both sides.
template <class C>
class Loads {
 public:
  __device__ Loads(const TapWalk& p, const Block& block, const char* x_rows, const char* y_rows,
                   uint32_t base, int2 (*table)[kTapTerms])
      : p_(p),
        places_(places_of_tap(p, block.tap)),
        part_(part_of(places_, block.part * static_cast<int>(p.cluster.divisor) + block.rank,
                      p.parts.divisor * p.cluster.divisor)),
        walk_(places_, part_, static_cast<int>(threadIdx.x) % 32),
        table_(table) {
    const OfY of_y;
    const OfX of_x;
    const int o = block.m0 + of_y.chunk * 8, c = block.n0 + of_x.chunk * 8;
    // Channels that are not there are neither copied nor stored, whatever becomes of them in between.
    live_y_ = o < p.y_channels;
    live_x_ = c < p.x_channels;
    y_ = y_rows + (int64_t{block.group} * p.y_channels + o) * 2;
    x_ = x_rows + (int64_t{block.group} * p.x_channels + c) * 2;
    y_target_ = base + of_y.target();
    x_target_ = base + C::kYBytes + of_x.target();
  }
  __device__ int steps() const { return part_.steps; }

  // Of the steps in order, by the first warp; a barrier lies between this and load.
  __device__ void tabulate(int step) {
    if (threadIdx.x >= 32) return;
    const bool there = walk_.is_there();
    table_[step % C::kStages][threadIdx.x] =
        int2{there ? walk_.y(p_, places_) : -1, there ? walk_.x(p_, places_) : -1};
    walk_.next(places_);
  }
  __device__ void load(int step) const {
    const int slot = step % C::kStages;
    const uint32_t stage = static_cast<uint32_t>(slot) * C::kStageBytes;
    const OfY of_y;
    const OfX of_x;
    if (live_y_) {
#pragma unroll
      for (int i = 0; i < kTapTerms; i += OfY::kPass)
        if (of_y.has(i))
          copy(OfY::further(y_target_, i) + stage, y_, table_[slot][of_y.first + i].x,
               p_.groups * p_.y_channels);
    }
    if (live_x_) {
#pragma unroll
      for (int i = 0; i < kTapTerms; i += OfX::kPass)
        if (of_x.has(i))
          copy(OfX::further(x_target_, i) + stage, x_, table_[slot][of_x.first + i].y,
               p_.groups * p_.x_channels);
    }
  }

 private:
  using OfY = Lane<C::kThreads, C::kM / 8>;
  using OfX = Lane<C::kThreads, C::kN / 8>;

  __device__ static void copy(uint32_t target, const char* rows, int place, int channels) {
    const auto from = static_cast<uint64_t>(max(place, 0)) * (static_cast<uint32_t>(channels) * 2u);
    copy_chunk(target, rows + from, place >= 0);
  }

  const TapWalk& p_;
  TapPlaces places_;
  TapPart part_;
  TapPlaceWalk walk_;
  int2 (*table_)[kTapTerms];
  uint32_t y_target_, x_target_;
  const char *y_, *x_;
  bool live_y_, live_x_;
};

}  // namespace retrograd::kernels::cuda::tap
