// SPDX-License-Identifier: Apache-2.0
// The loop of wgmma_gather: one thread asks for tiles (TMA), warpgroups multiply them.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/dense/wgmma_gather.h"
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
//
// kPacked taps of few channels make one step: each has boxes of its own.
//
// kBlocks of a multiprocessor: of two, one multiplies while the other writes, which is worth it where sums
// are short.
template <bool kTurned_, int kBands_, int kColumns_, int kGroups_, int kStages_, int kShared_ = 1,
          int kRowBytes_ = 128, int kBlocks_ = 1, int kPacked_ = 1>
struct Cut {
  static constexpr bool kTurned = kTurned_;
  static constexpr int kBands = kBands_, kColumns = kColumns_, kGroups = kGroups_, kStages = kStages_,
                       kShared = kShared_, kBlocks = kBlocks_, kPacked = kPacked_;
  static constexpr int kRowBytes = kRowBytes_, kStepChannels = kRowBytes / 2;  // a row has a tap's channels
  static constexpr int kPlaces = kGroups * kBands * 64, kChannels = kColumns;
  // One warp asks for copies; a whole warpgroup can give registers to the others.
  static constexpr int kMultiply = kGroups * 128, kThreads = kMultiply + (kBlocks == 1 ? 128 : 32);
  // Of a thread that asks for copies, and of one that multiplies: 512 a multiprocessor.
  static constexpr int kFewRegisters = kGroups == 2 ? 40 : 32,
                       kManyRegisters = (512 - kFewRegisters) / kGroups / 8 * 8;
  // Rows of weights lie along the sum where they are turned, and are as long as the swizzle allows.
  static constexpr int kWeightRowBytes = kTurned && kColumns % 64 == 0 ? 128 : kRowBytes,
                       kWeightRow = kWeightRowBytes / 2;
  static constexpr int kWeightBoxes = kTurned ? (kChannels + kWeightRow - 1) / kWeightRow : 1;
  static constexpr int kWeights = kTurned ? kStepChannels : kChannels;  // rows of a box
  static constexpr int kHalo = kShared > 1 ? kMostHalo : 0, kSourceRows = kPlaces + kHalo;
  static constexpr int kSourceBytes = kSourceRows * kRowBytes, kBoxBytes = kWeights * kWeightRowBytes,
                       kTapBytes = kSourceBytes + kShared * kWeightBoxes * kBoxBytes,
                       kStageBytes = kPacked * kTapBytes;
  static constexpr int kStagedBytes = 32 * kStagedPitch;  // results of a warpgroup on their way to planes
  // The tiles begin at a multiple of 1024.
  static constexpr int kBytes = kStages * kStageBytes + kGroups * kStagedBytes + 1024;
  static constexpr int kBoxes = (kSourceRows + kMostBox - 1) / kMostBox, kBox = kSourceRows / kBoxes;
  static_assert(kBoxes * kBox == kSourceRows && kBox % 8 == 0 && kBytes <= 228 * 1024 / kBlocks - 1280);
  static_assert(kTapBytes % 1024 == 0 && kSourceBytes % 1024 == 0 && kBoxBytes % 1024 == 0);
};

// One product of a launch: a residue of grad_input's strides, or all of a pass. Axes are d, h, w.
struct Walk {
  FastDiv results[3];             // of an axis
  int live;                       // of those along w
  int axes;                       // of the map of places
  int first[3];                   // place i of an axis begins at i·step + first
  int offset[3], offset_step[3];  // and tap j lies offset + j·offset_step further
  int taps[3];                    // of an axis
  int tap_first[3], tap_stride[3];
  int result_first[3];
  uint32_t places, tiles;  // tiles: of this product and those before it
  int steps, loads;        // of a tile; loads: taps' boxes, kPacked of which are a step
};

constexpr int kMostWalks = kMostGathered;
struct Args {
  Conv conv;
  bool forward, repair;
  bool mixes;  // a tap's last chunk has channels of the next group, times zero
  int step[3], kernel[3], result_step[3];
  // Of a group: result channels, source channels, chunks of a tap's source channels, tiles along the former.
  int columns, terms, chunks;
  uint32_t across;
  int groups;
  uint32_t tiles;  // all
  Tensor result;
  int run;                 // that many results of a channel lie side by side and aligned: 8, 4, 2 or 1
  int shares;              // blocks of a tile, a cluster; each has its share of the steps
  Walk walks[kMostWalks];  // longest tiles first
};
struct Maps {
  CUtensorMap weights, sources[kMostWalks];
};
static_assert(sizeof(Args) + sizeof(Maps) < 4096);  // what any kernel can be told

// Where a tile of results lies, and the steps of it that are this block's.
struct Tile {
  const Walk* walk;
  int number;  // of the walk
  uint32_t place;
  int group, channel;  // channel: of the group
  int first_step, steps;
};

// The tiles of this block. Those of a round are neighbours; every other round goes backwards, so that who had
// a long one gets a short one.
class Tiles {
 public:
  __device__ explicit Tiles(const Args& p) : p_(p), at_(blockIdx.x / static_cast<uint32_t>(p.shares)) {}
  __device__ bool is_left() const { return at_ < p_.tiles; }
  template <class C>
  __device__ Tile get() const {
    int i = 0;
    while (at_ >= p_.walks[i].tiles) ++i;
    const Walk& walk = p_.walks[i];
    const uint32_t tile = at_ - (i == 0 ? 0 : p_.walks[i - 1].tiles);
    const uint32_t across = p_.across * static_cast<uint32_t>(p_.groups), column = tile % across;
    const int rank = static_cast<int>(blockIdx.x % static_cast<uint32_t>(p_.shares));
    // Steps are few enough for 32 bits, which divide without a call.
    const auto begin = [&](int of) {
      return static_cast<int>(static_cast<uint32_t>(walk.steps * of) / static_cast<uint32_t>(p_.shares));
    };
    return {&walk,
            i,
            tile / across * C::kPlaces,
            static_cast<int>(column / p_.across),
            static_cast<int>(column % p_.across * C::kChannels),
            begin(rank),
            begin(rank + 1) - begin(rank)};
  }
  // Clusters have one tile.
  __device__ void next() {
    const uint32_t left = gridDim.x - 1 - blockIdx.x, ahead = backwards_ ? blockIdx.x : left;
    at_ = p_.shares > 1 ? p_.tiles : at_ + 2 * ahead + 1;
    backwards_ = !backwards_;
  }

 private:
  const Args& p_;
  uint32_t at_;
  bool backwards_ = false;
};

struct Barriers {
  uint32_t full, empty;  // of the first stage; the others follow 8 bytes apart
};

// Asks for the operands of a tile, step by step.
template <class C>
__device__ void copy_tile(const Args& p, const Maps& maps, const Tile& tile, uint32_t stages,
                          Barriers barriers, hopper::Ring<C::kStages>& ring) {
  const Walk& walk = *tile.walk;
  const CUtensorMap* const source = maps.sources + tile.number;
  int at[C::kBoxes][4];  // n, d, h, w
#pragma unroll
  for (int b = 0; b < C::kBoxes; ++b) {
    const Place place = place_of(walk, tile.place + b * C::kBox);
    at[b][0] = place.n;
    for (int a = 0; a < 3; ++a) at[b][1 + a] = place.at[a] * p.step[a] + walk.first[a];
  }
  const int first = tile.first_step * C::kPacked, across = walk.taps[2] / C::kShared;
  int c = first % p.chunks, w = first / p.chunks;
  int h = w / across;
  w = w % across * C::kShared;
  int d = h / walk.taps[1];
  h %= walk.taps[1];
  for (int step = 0; step < tile.steps; ++step, ring.next()) {
    const uint32_t full = barriers.full + ring.stage * 8;
    hopper::wait(barriers.empty + ring.stage * 8, ring.parity ^ 1);
    hopper::arrive_expecting(full, C::kStageBytes);
    uint32_t target = stages + ring.stage * C::kStageBytes;
    for (int i = 0; i < C::kPacked; ++i, target += C::kTapBytes) {
      const int number = ((walk.tap_first[0] + d * walk.tap_stride[0]) * p.kernel[1] + walk.tap_first[1] +
                          h * walk.tap_stride[1]) *
                             p.kernel[2] +
                         walk.tap_first[2] + w * walk.tap_stride[2];
      const auto to_d = static_cast<uint16_t>(walk.offset[0] + d * walk.offset_step[0]),
                 to_h = static_cast<uint16_t>(walk.offset[1] + h * walk.offset_step[1]),
                 to_w = static_cast<uint16_t>(C::kShared > 1 ? 0 : walk.offset[2] + w * walk.offset_step[2]);
      // A step that is not full gets channels that are not there: zeros.
      const bool there = C::kPacked == 1 || first + step * C::kPacked + i < walk.loads;
      const int term = (there ? c : p.chunks) * C::kStepChannels,
                channel = there ? tile.group * p.terms + term : p.groups * p.terms;
#pragma unroll
      for (int b = 0; b < C::kBoxes; ++b) {
        const uint32_t to = target + b * C::kBox * C::kRowBytes;
        if (walk.axes == 2)
          hopper::load_places(to, source, full, channel, at[b][3], at[b][2], at[b][0], to_w, to_h);
        else
          hopper::load_places(to, source, full, channel, at[b][3], at[b][2], at[b][1], at[b][0], to_w, to_h,
                              to_d);
      }
#pragma unroll
      for (int b = 0; b < C::kShared * C::kWeightBoxes; ++b) {
        const int x = tile.channel + b % C::kWeightBoxes * C::kWeightRow,
                  tap = number + b / C::kWeightBoxes * walk.tap_stride[2];
        hopper::load_box(target + C::kSourceBytes + b * C::kBoxBytes, &maps.weights, full,
                         C::kTurned ? x : term, tap, C::kTurned ? term : tile.channel, tile.group);
      }
      if (++c < p.chunks) continue;
      c = 0;
      if ((w += C::kShared) < walk.taps[2]) continue;
      w = 0;
      if (++h < walk.taps[1]) continue;
      h = 0;
      if (++d == walk.taps[0]) d = 0;
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
      : places(factor<C::kRowBytes>(tiles + group * (C::kBands * 64 * C::kRowBytes))),
        weights(factor<C::kWeightRowBytes>(tiles + C::kSourceBytes)) {}
  template <int kRowBytes>
  __device__ static uint64_t factor(uint32_t address) {
    constexpr uint32_t kLeading = C::kBoxBytes;  // of what is turned
    if constexpr (kRowBytes == 32) return hopper::thin_factor(address);
    return kRowBytes == 64 ? hopper::narrow_factor(address, kLeading) : hopper::factor(address, kLeading);
  }
  __device__ void release(uint32_t stage, Barriers barriers) const {
    if (threadIdx.x % 128 == 0) hopper::arrive(barriers.empty + stage * 8);
  }
  __device__ void sum_up(const Tile& tile, Barriers barriers) {
    uint32_t last = 0;
    if (tile.steps == 0) return clear();
#pragma unroll
    for (int i = 0; i < C::kBands; ++i) hopper::forget(sums[i]);
    for (int step = 0; step < tile.steps; ++step, ring.next()) {
      hopper::wait(barriers.full + ring.stage * 8, ring.parity);
      const uint64_t at = ring.stage * (C::kStageBytes / 16);
      hopper::fence_sums();
#pragma unroll
      for (int n = 0; n < C::kPacked * C::kShared; ++n) {
        const int load = n / C::kShared, tap = n % C::kShared;
        const int further = C::kShared > 1 ? tile.walk->offset[2] + tap * tile.walk->offset_step[2] : 0;
#pragma unroll
        for (int k = 0; k < C::kRowBytes / 32; ++k)
#pragma unroll
          for (int i = 0; i < C::kBands; ++i)
            hopper::multiply<T, C::kColumns, false, C::kTurned>(
                sums[i],
                places + at + load * (C::kTapBytes / 16) + further * (C::kRowBytes / 16) +
                    i * (64 * C::kRowBytes / 16) + 2 * k,
                weights + at + load * (C::kTapBytes / 16) + tap * (C::kWeightBoxes * C::kBoxBytes / 16) +
                    (C::kTurned ? C::kWeightRowBytes : 2) * k,
                step > 0 || n > 0 || k > 0);
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
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < C::kBands; ++i)
#pragma unroll
      for (float& sum : sums[i]) sum = 0;
  }
};

}  // namespace retrograd::kernels::cuda::wgather
