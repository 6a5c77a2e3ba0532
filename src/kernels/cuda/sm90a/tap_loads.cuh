// SPDX-License-Identifier: Apache-2.0
// How tap_weight's blocks are cut, what lies in a stage, and how it comes there: 32 places of y, a group of
// 64 channels after the other, then the same of x. Threads copy 16 bytes each, so that places may lie
// anywhere.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/tap_places.h"
#include "kernels/cuda/dense/tile_mma.cuh"

namespace retrograd::kernels::cuda::tap {

inline constexpr int kThreads = 256, kM = 128;
inline constexpr int kRow = 128, kWidth = 64;    // bytes and channels of a place in a group
inline constexpr int kGroup = kTapTerms * kRow;  // bytes of a group
inline constexpr int kYBytes = kM / kWidth * kGroup;

template <int kN_, int kStages_, int kBlocks_>
struct Cut {
  static constexpr int kN = kN_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kStageBytes = kYBytes + kN / kWidth * kGroup;
  static constexpr int kAhead = kStages - 2;  // steps that are copied before they are multiplied
};

// Which results a block makes, over which part of the places.
struct Block {
  int part, n0, tap, m0;
};
template <class C>
__device__ Block block_of(const TapWalk& p) {
  int rest = static_cast<int>(blockIdx.x);
  Block block;
  block.part = rest % p.parts;
  rest /= p.parts;
  block.n0 = rest % p.across_n * C::kN;
  rest /= p.across_n;
  block.tap = rest % p.taps;
  block.m0 = rest / p.taps * kM;
  return block;
}

// Chunk `chunk` of every kPass-th of the places of a step, from `first` on: what a thread copies of one
// factor.
template <int kChunks>
struct Lane {
  static constexpr int kPass = kThreads / kChunks;
  static_assert(kPass % 8 == 0 && kTapTerms % kPass == 0);
  int first = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
  // Chunks of eight rows are permuted as warpgroup products expect it; eight rows further they are the same.
  __device__ uint32_t target() const {
    return static_cast<uint32_t>(chunk / 8 * kGroup + first * kRow + (chunk % 8 ^ first % 8) * 16);
  }
};

// The places of the steps under way, y's and x's; −1: past the end, zeros on both sides.
template <class C>
class Loads {
 public:
  __device__ Loads(const TapWalk& p, const Block& block, const char* x_rows, const char* y_rows,
                   uint32_t base, int2 (*table)[kTapTerms])
      : p_(p),
        places_(places_of_tap(p, block.tap)),
        part_(part_of(places_, block.part, p.parts)),
        walk_(places_, part_, static_cast<int>(threadIdx.x) % 32),
        table_(table),
        y_pitch_(static_cast<uint32_t>(p.y_channels) * 2),
        x_pitch_(static_cast<uint32_t>(p.x_channels) * 2) {
    const OfY of_y;
    const OfX of_x;
    const int o = block.m0 + of_y.chunk * 8, c = block.n0 + of_x.chunk * 8;
    // Channels that are not there are neither copied nor stored, whatever becomes of them in between.
    live_y_ = o < p.y_channels;
    live_x_ = c < p.x_channels;
    y_ = y_rows + int64_t{o} * 2;
    x_ = x_rows + int64_t{c} * 2;
    y_target_ = base + of_y.target();
    x_target_ = base + kYBytes + of_x.target();
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
      for (int i = 0; i < kTapTerms; i += OfY::kPass) {
        const int place = table_[slot][of_y.first + i].x;
        copy_chunk(y_target_ + stage + i * kRow, y_ + static_cast<uint64_t>(max(place, 0)) * y_pitch_,
                   place >= 0);
      }
    }
    if (live_x_) {
#pragma unroll
      for (int i = 0; i < kTapTerms; i += OfX::kPass) {
        const int place = table_[slot][of_x.first + i].y;
        copy_chunk(x_target_ + stage + i * kRow, x_ + static_cast<uint64_t>(max(place, 0)) * x_pitch_,
                   place >= 0);
      }
    }
  }

 private:
  using OfY = Lane<kM / 8>;
  using OfX = Lane<C::kN / 8>;

  const TapWalk& p_;
  TapPlaces places_;
  TapPart part_;
  TapPlaceWalk walk_;
  int2 (*table_)[kTapTerms];
  uint32_t y_pitch_, x_pitch_, y_target_, x_target_;
  const char *y_, *x_;
  bool live_y_, live_x_;
};

}  // namespace retrograd::kernels::cuda::tap
