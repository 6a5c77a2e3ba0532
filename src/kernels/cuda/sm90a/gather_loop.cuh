// SPDX-License-Identifier: Apache-2.0
// The loop of wgmma_gather: one thread asks for tiles (TMA), warpgroups multiply them.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/shapes.h"
#include "kernels/cuda/wgmma.cuh"

namespace retrograd::kernels::cuda::wgather {

constexpr int kRowBytes = 128;                // of shared memory: 64 channels
constexpr int kStepChannels = kRowBytes / 2;  // of a step
constexpr int kMostBox = 256;                 // places of one copy

// Blocks of kPlaces x kChannels results. A warpgroup multiplies kBands times 64 rows by kColumns; there are
// kRowGroups by kColumnGroups of them. Rows are places and columns channels, or, swapped, the other way
// round. kAcross blocks of a cluster have the same places, kAlong the same channels: what they share each
// reads once.
// Weights lie as [y channels][taps][x channels]: their rows are those of the result's channels in a forward
// pass; turned (grad_input), they lie along the sum.
template <bool kTurned_, bool kSwapped_, int kBands_, int kColumns_, int kRowGroups_, int kColumnGroups_,
          int kStages_, int kAlong_ = 1, int kAcross_ = 1>
struct Cut {
  static constexpr bool kTurned = kTurned_, kSwapped = kSwapped_;
  static constexpr int kBands = kBands_, kColumns = kColumns_, kRowGroups = kRowGroups_,
                       kColumnGroups = kColumnGroups_, kGroups = kRowGroups * kColumnGroups,
                       kStages = kStages_, kAlong = kAlong_, kAcross = kAcross_;
  static constexpr int kRows = kRowGroups * kBands * 64, kAllColumns = kColumnGroups * kColumns;
  static constexpr int kPlaces = kSwapped ? kAllColumns : kRows, kChannels = kSwapped ? kRows : kAllColumns;
  static constexpr int kThreads = kGroups * 128 + 128;
  // Of a thread that asks for copies, and of one that multiplies: 512 a multiprocessor.
  static constexpr int kFewRegisters = kGroups == 2 ? 40 : 32,
                       kManyRegisters = (512 - kFewRegisters) / kGroups / 8 * 8;
  static constexpr int kWeightBoxes = kTurned ? (kChannels + 63) / 64 : 1;
  static constexpr int kWeightBytes = kTurned ? kWeightBoxes * 64 * kRowBytes : kChannels * kRowBytes;
  static constexpr int kStageBytes = kPlaces * kRowBytes + kWeightBytes;
  static constexpr int kBytes = kStages * kStageBytes + 1024;  // the tiles begin at a multiple of 1024
  static constexpr int kPart = kPlaces / kAcross;              // places this block reads
  static constexpr int kBoxes = (kPart + kMostBox - 1) / kMostBox, kBox = kPart / kBoxes;
  // Rows of weights this block reads at once.
  static constexpr int kWeights = (kTurned ? kStepChannels : kChannels) / kAlong;
  static_assert(kBox % 8 == 0 && kWeights % 8 == 0 && kBox * kBoxes * kAcross == kPlaces);
  static_assert(!kTurned || kSwapped || kColumnGroups == 1);
};

// Axes are d, h, w.
struct Args {
  Conv conv;
  bool forward, repair;
  int axes;                       // of the map of places
  FastDiv results[3];             // of an axis
  int first[3], step[3];          // place i of an axis begins at i·step + first
  int offset[3], offset_step[3];  // and tap j lies offset + j·offset_step further
  int taps[3];                    // of an axis
  int tap_first[3], tap_stride[3], kernel[3];
  int result_step[3], result_first[3];
  uint32_t places;
  int columns, chunks;     // chunks: of a tap's channels
  uint32_t tiles, across;  // of a cluster: all, along the channels
  Tensor result;
  int run;  // that many results of a channel lie side by side and aligned: 8, 4, 2 or 1
};

struct Place {
  int n, at[3];
};
__device__ inline Place place_of(const Args& p, uint32_t m) {
  Place place;
  uint32_t w = m;
  uint32_t h = p.results[2].split(w);
  uint32_t d = p.results[1].split(h);
  place.n = static_cast<int>(p.results[0].split(d));
  place.at[0] = static_cast<int>(d);
  place.at[1] = static_cast<int>(h);
  place.at[2] = static_cast<int>(w);
  return place;
}

// Where this block stands in its cluster, and the tiles it makes.
template <class C>
struct Schedule {
  uint32_t along, across, tile, step;
  __device__ Schedule() {
    const uint32_t rank = C::kAlong * C::kAcross > 1 ? hopper::rank_in_cluster() : 0;
    along = rank / C::kAcross;
    across = rank % C::kAcross;
    tile = blockIdx.x / (C::kAlong * C::kAcross);
    step = gridDim.x / (C::kAlong * C::kAcross);
  }
  __device__ uint32_t first_place(const Args& p) const {
    return (tile / p.across * C::kAlong + along) * C::kPlaces;
  }
  __device__ int first_channel(const Args& p) const {
    return static_cast<int>((tile % p.across * C::kAcross + across) * C::kChannels);
  }
};

struct Barriers {
  uint32_t full, empty;  // of the first stage; the others follow 8 bytes apart
};

template <class C>
__device__ void copy_tiles(const Args& p, const CUtensorMap* source, const CUtensorMap* weights,
                           uint32_t tiles, Barriers barriers) {
  Schedule<C> schedule;
  hopper::Ring<C::kStages> ring;
  uint16_t same_places = 0, same_channels = 0;
  for (int i = 0; i < C::kAcross; ++i)
    same_places = static_cast<uint16_t>(same_places | 1u << (schedule.along * C::kAcross + i));
  for (int i = 0; i < C::kAlong; ++i)
    same_channels = static_cast<uint16_t>(same_channels | 1u << (i * C::kAcross + schedule.across));
  for (; schedule.tile < p.tiles; schedule.tile += schedule.step) {
    int at[C::kBoxes][4];  // n, d, h, w
#pragma unroll
    for (int b = 0; b < C::kBoxes; ++b) {
      const Place place = place_of(p, schedule.first_place(p) + schedule.across * C::kPart + b * C::kBox);
      at[b][0] = place.n;
      for (int a = 0; a < 3; ++a) at[b][1 + a] = place.at[a] * p.step[a] + p.first[a];
    }
    const int channel = schedule.first_channel(p), part = static_cast<int>(schedule.along) * C::kWeights;
    for (int d = 0; d < p.taps[0]; ++d)
      for (int h = 0; h < p.taps[1]; ++h)
        for (int w = 0; w < p.taps[2]; ++w) {
          const int number =
              ((p.tap_first[0] + d * p.tap_stride[0]) * p.kernel[1] + p.tap_first[1] + h * p.tap_stride[1]) *
                  p.kernel[2] +
              p.tap_first[2] + w * p.tap_stride[2];
          const auto to_d = static_cast<uint16_t>(p.offset[0] + d * p.offset_step[0]),
                     to_h = static_cast<uint16_t>(p.offset[1] + h * p.offset_step[1]),
                     to_w = static_cast<uint16_t>(p.offset[2] + w * p.offset_step[2]);
          for (int c = 0; c < p.chunks; ++c, ring.next()) {
            const uint32_t full = barriers.full + ring.stage * 8;
            const uint32_t stage = tiles + ring.stage * C::kStageBytes;
            hopper::wait(barriers.empty + ring.stage * 8, ring.parity ^ 1);
            hopper::arrive_expecting(full, C::kStageBytes);
#pragma unroll
            for (int b = 0; b < C::kBoxes; ++b) {
              const uint32_t target = stage + (schedule.across * C::kPart + b * C::kBox) * kRowBytes;
              if (C::kAcross > 1) {
                if (p.axes == 2)
                  hopper::load_places_for(same_places, target, source, full, c * kStepChannels, at[b][3],
                                          at[b][2], at[b][0], to_w, to_h);
                else
                  hopper::load_places_for(same_places, target, source, full, c * kStepChannels, at[b][3],
                                          at[b][2], at[b][1], at[b][0], to_w, to_h, to_d);
              } else if (p.axes == 2) {
                hopper::load_places(target, source, full, c * kStepChannels, at[b][3], at[b][2], at[b][0],
                                    to_w, to_h);
              } else {
                hopper::load_places(target, source, full, c * kStepChannels, at[b][3], at[b][2], at[b][1],
                                    at[b][0], to_w, to_h, to_d);
              }
            }
#pragma unroll
            for (int b = 0; b < C::kWeightBoxes; ++b) {
              const uint32_t target = stage + (C::kPlaces + b * 64 + part) * kRowBytes;
              const int x = C::kTurned ? channel + b * 64 : c * kStepChannels,
                        y = part + (C::kTurned ? c * kStepChannels : channel);
              if (C::kAlong > 1)
                hopper::load_box_for(same_channels, target, weights, full, x, number, y);
              else
                hopper::load_box(target, weights, full, x, number, y);
            }
          }
        }
  }
}

// What a warpgroup multiplies; the stages it has read go back to every block that writes here.
template <class T, class C>
struct Multiplier {
  static constexpr bool kRowsTurned = C::kTurned && C::kSwapped, kColumnsTurned = C::kTurned && !C::kSwapped;
  float sums[C::kBands][C::kColumns / 2];
  hopper::Ring<C::kStages> ring;
  uint64_t rows, columns;   // the factors of the first stage
  int32_t release_to = -1;  // this thread tells that block

  __device__ Multiplier(uint32_t tiles, int group, const Schedule<C>& schedule) {
    const uint32_t weights = tiles + C::kPlaces * kRowBytes;
    constexpr uint32_t kLeading = 64 * kRowBytes;  // of what is turned
    rows = hopper::factor(
        (C::kSwapped ? weights : tiles) + group % C::kRowGroups * (C::kBands * 64 * kRowBytes), kLeading);
    columns = hopper::factor(
        (C::kSwapped ? tiles : weights) + group / C::kRowGroups * (C::kColumns * kRowBytes), kLeading);
    const uint32_t thread = threadIdx.x % 128;
    if (thread < C::kAcross) {
      release_to = static_cast<int32_t>(schedule.along * C::kAcross + thread);
    } else if (thread < C::kAcross + C::kAlong - 1) {
      const uint32_t other = thread - C::kAcross;
      release_to =
          static_cast<int32_t>((other + (other >= schedule.along ? 1 : 0)) * C::kAcross + schedule.across);
    }
  }
  __device__ void release(uint32_t stage, Barriers barriers) const {
    if (release_to < 0) return;
    if (C::kAlong * C::kAcross == 1)
      hopper::arrive(barriers.empty + stage * 8);
    else
      hopper::arrive_at(barriers.empty + stage * 8, static_cast<uint32_t>(release_to));
  }
  __device__ void sum_up(int steps, Barriers barriers) {
    uint32_t last = 0;
    for (int step = 0; step < steps; ++step, ring.next()) {
      hopper::wait(barriers.full + ring.stage * 8, ring.parity);
      const uint64_t at = ring.stage * (C::kStageBytes / 16);
      hopper::fence_sums();
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int i = 0; i < C::kBands; ++i)
          hopper::multiply<T, C::kColumns, kRowsTurned, kColumnsTurned>(
              sums[i], rows + at + i * (64 * kRowBytes / 16) + (kRowsTurned ? 128 : 2) * k,
              columns + at + (kColumnsTurned ? 128 : 2) * k, step > 0 || k > 0);
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
