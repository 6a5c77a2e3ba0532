// SPDX-License-Identifier: Apache-2.0
// The loop of wgmma_gather: one thread asks for tiles (TMA), warpgroups multiply them.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/dense/wgmma_gather_plan.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/places.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda::wgather {

constexpr int kMostBox = 256;      // places of one copy
constexpr int kStagedPitch = 144;  // bytes of 64 staged places: rows begin in different banks

// Tiles of kPlaces x kChannels results by kGroups warpgroups of kBands times 64 places each.
//
// Weights lie as [y channels][taps][x channels]: their rows are those of the result's channels in a forward
// pass; turned (grad_input), they lie along the sum.
//
// kShared taps along w read the same rows of shared memory, each a few rows further: then places are counted
// along lines as long as all their sources, and results beyond the line's end are left out.
template <bool kTurned_, int kBands_, int kColumns_, int kGroups_, int kStages_, int kShared_ = 1,
          int kRowBytes_ = 128>
struct Cut {
  static constexpr bool kTurned = kTurned_;
  static constexpr int kBands = kBands_, kColumns = kColumns_, kGroups = kGroups_, kStages = kStages_,
                       kShared = kShared_;
  static constexpr int kRowBytes = kRowBytes_, kStepChannels = kRowBytes / 2;  // a row has a step's channels
  static constexpr int kPlaces = kGroups * kBands * 64, kChannels = kColumns;
  static constexpr int kThreads = kGroups * 128 + 128;
  // Of a thread that asks for copies, and of one that multiplies: 512 a multiprocessor.
  static constexpr int kFewRegisters = kGroups == 2 ? 40 : 32,
                       kManyRegisters = (512 - kFewRegisters) / kGroups / 8 * 8;
  static constexpr int kWeightBoxes = kTurned ? (kChannels + kStepChannels - 1) / kStepChannels : 1;
  static constexpr int kWeights = kTurned ? kStepChannels : kChannels;  // rows of a box
  static constexpr int kHalo = kShared > 1 ? kMostHalo : 0, kSourceRows = kPlaces + kHalo,
                       kWeightRows = kWeightBoxes * kWeights;
  static constexpr int kStageBytes = (kSourceRows + kShared * kWeightRows) * kRowBytes;
  static constexpr int kStagedBytes = 32 * kStagedPitch;  // results of a warpgroup on their way to planes
  // The tiles begin at a multiple of 1024.
  static constexpr int kBytes = kStages * kStageBytes + kGroups * kStagedBytes + 1024;
  static constexpr int kBoxes = (kSourceRows + kMostBox - 1) / kMostBox, kBox = kSourceRows / kBoxes;
  static_assert(kBoxes * kBox == kSourceRows && kBox % 8 == 0 && kBytes <= 227 * 1024 - 256);
};

// Axes are d, h, w.
struct Args {
  Conv conv;
  bool forward, repair;
  int axes;                       // of the map of places
  FastDiv results[3];             // of an axis
  int live;                       // of those along w
  int first[3], step[3];          // place i of an axis begins at i·step + first
  int offset[3], offset_step[3];  // and tap j lies offset + j·offset_step further
  int taps[3];                    // of an axis
  int tap_first[3], tap_stride[3], kernel[3];
  int result_step[3], result_first[3];
  uint32_t places;
  int columns, chunks;     // chunks: of a tap's channels
  uint32_t tiles, across;  // all, along the channels
  Tensor result;
  int run;  // that many results of a channel lie side by side and aligned: 8, 4, 2 or 1
};

template <class C>
__device__ uint32_t first_place(const Args& p, uint32_t tile) {
  return tile / p.across * C::kPlaces;
}
template <class C>
__device__ int first_channel(const Args& p, uint32_t tile) {
  return static_cast<int>(tile % p.across * C::kChannels);
}

struct Barriers {
  uint32_t full, empty;  // of the first stage; the others follow 8 bytes apart
};

template <class C>
__device__ void copy_tiles(const Args& p, const CUtensorMap* source, const CUtensorMap* weights,
                           uint32_t tiles, Barriers barriers) {
  hopper::Ring<C::kStages> ring;
  for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    int at[C::kBoxes][4];  // n, d, h, w
#pragma unroll
    for (int b = 0; b < C::kBoxes; ++b) {
      const Place place = place_of(p, first_place<C>(p, tile) + b * C::kBox);
      at[b][0] = place.n;
      for (int a = 0; a < 3; ++a) at[b][1 + a] = place.at[a] * p.step[a] + p.first[a];
    }
    const int channel = first_channel<C>(p, tile);
    for (int d = 0; d < p.taps[0]; ++d)
      for (int h = 0; h < p.taps[1]; ++h)
        for (int w = 0; w < p.taps[2]; w += C::kShared) {
          const int number =
              ((p.tap_first[0] + d * p.tap_stride[0]) * p.kernel[1] + p.tap_first[1] + h * p.tap_stride[1]) *
                  p.kernel[2] +
              p.tap_first[2] + w * p.tap_stride[2];
          const auto to_d = static_cast<uint16_t>(p.offset[0] + d * p.offset_step[0]),
                     to_h = static_cast<uint16_t>(p.offset[1] + h * p.offset_step[1]),
                     to_w = static_cast<uint16_t>(C::kShared > 1 ? 0 : p.offset[2] + w * p.offset_step[2]);
          for (int c = 0; c < p.chunks * C::kStepChannels; c += C::kStepChannels, ring.next()) {
            const uint32_t full = barriers.full + ring.stage * 8;
            const uint32_t stage = tiles + ring.stage * C::kStageBytes;
            hopper::wait(barriers.empty + ring.stage * 8, ring.parity ^ 1);
            hopper::arrive_expecting(full, C::kStageBytes);
#pragma unroll
            for (int b = 0; b < C::kBoxes; ++b) {
              const uint32_t target = stage + b * C::kBox * C::kRowBytes;
              if (p.axes == 2)
                hopper::load_places(target, source, full, c, at[b][3], at[b][2], at[b][0], to_w, to_h);
              else
                hopper::load_places(target, source, full, c, at[b][3], at[b][2], at[b][1], at[b][0], to_w,
                                    to_h, to_d);
            }
#pragma unroll
            for (int b = 0; b < C::kShared * C::kWeightBoxes; ++b) {
              const int x = channel + b % C::kWeightBoxes * C::kStepChannels,
                        tap = number + b / C::kWeightBoxes * p.tap_stride[2];
              hopper::load_box(stage + (C::kSourceRows + b * C::kWeights) * C::kRowBytes, weights, full,
                               C::kTurned ? x : c, tap, C::kTurned ? c : channel);
            }
          }
        }
  }
}

// What a warpgroup multiplies.
template <class T, class C>
struct Multiplier {
  float sums[C::kBands][C::kColumns / 2];
  hopper::Ring<C::kStages> ring;
  uint64_t places, weights;  // the factors of the first stage

  __device__ Multiplier(uint32_t tiles, int group)
      : places(factor(tiles + group * (C::kBands * 64 * C::kRowBytes))),
        weights(factor(tiles + C::kSourceRows * C::kRowBytes)) {}
  __device__ static uint64_t factor(uint32_t address) {
    constexpr uint32_t kLeading = C::kWeights * C::kRowBytes;  // of what is turned
    return C::kRowBytes == 64 ? hopper::narrow_factor(address, kLeading) : hopper::factor(address, kLeading);
  }
  __device__ void release(uint32_t stage, Barriers barriers) const {
    if (threadIdx.x % 128 == 0) hopper::arrive(barriers.empty + stage * 8);
  }
  __device__ void sum_up(const Args& p, int steps, Barriers barriers) {
    uint32_t last = 0;
    for (int step = 0; step < steps; ++step, ring.next()) {
      hopper::wait(barriers.full + ring.stage * 8, ring.parity);
      const uint64_t at = ring.stage * (C::kStageBytes / 16);
      hopper::fence_sums();
#pragma unroll
      for (int tap = 0; tap < C::kShared; ++tap) {
        const int further = C::kShared > 1 ? p.offset[2] + tap * p.offset_step[2] : 0;
#pragma unroll
        for (int k = 0; k < C::kRowBytes / 32; ++k)
#pragma unroll
          for (int i = 0; i < C::kBands; ++i)
            hopper::multiply<T, C::kColumns, false, C::kTurned>(
                sums[i], places + at + further * (C::kRowBytes / 16) + i * (64 * C::kRowBytes / 16) + 2 * k,
                weights + at + tap * (C::kWeightRows * C::kRowBytes / 16) +
                    (C::kTurned ? C::kRowBytes : 2) * k,
                step > 0 || tap > 0 || k > 0);
      }
      hopper::close_products();
      hopper::wait_for_products<1>();
      if (step > 0) release(last, barriers);
      last = ring.stage;
    }
    hopper::wait_for_products<0>();
#pragma unroll
    for (int i = 0; i < C::kBands; ++i) hopper::hold(sums[i]);
    release(last, barriers);
  }
};

}  // namespace retrograd::kernels::cuda::wgather
