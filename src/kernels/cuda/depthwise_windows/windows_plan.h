// SPDX-License-Identifier: Apache-2.0
// How depthwise convolutions with any window are cut. The axes N, D, H and W get roles:
//   slide   a thread takes four results along it, `spacing` apart, so that what one reads with tap j the one
//           before reads with tap j + 1: a value that is loaded serves up to four products
//   inner   neighbouring threads take neighbouring places of it
//   run     a thread walks along it, a few places, with the same taps along the others: images, mostly
//   outer   what is left
// An item is a run, a place of outer and of inner, and a tile of four along slide. Blocks have lanes along
// items and rows of channels, or the other way round where channels lie closest in memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/depthwise_windows/windows_axis.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kSlide = 4, kChunk = 4;         // results of a thread, and taps along slide at once
inline constexpr int64_t kWindowsThreads = 256;      // of a block, at most
inline constexpr int64_t kWindowsShared = 48 << 10;  // bytes

struct DepthwiseWindows {
  DepthwiseAxis run, outer, slide, inner;
  int run_taps, outer_taps, slide_taps, inner_taps;  // numbers of taps from one to the next along the axis
  int run_length;
  int spacing, spread;              // of results, and of what they read with the same tap
  int64_t row_pitch, spaced_pitch;  // elements of the source by spread, of the result by spacing
  int column_pitch;                 // elements of the source from tap to tap along inner
  FastDiv by_classes, by_slots, by_inner, by_outer;  // classes: places modulo spacing
  int chunk;              // matching taps along slide that are walked at once, at most
  FastDiv by_chunk_step;  // places of the source that they step over
  uint32_t items;

  int taps;                      // of a kernel
  int channels;                  // of the result, or pairs of channels of x and y with weights between them
  int sources;                   // channels that a result adds
  FastDiv by_result, by_source;  // how many channels, or pairs, share one of the result and of the source
  int result_channel, source_channel;  // elements from channel to channel

  bool channels_inside;  // lanes run along channels
  int pack;              // channels of a thread
  int lanes, rows, channel_tiles, item_blocks;
  int tap_pitch, channel_pitch;  // of weights in shared memory

  DepthwiseKernels kernels;
};

struct GatherWindows {
  DepthwiseWindows windows;
  int64_t blocks;
  double microseconds;  // of an H200, about; bytes left out
};
// forward: the result is y, else x. pack: 1, or 2 where can_pack.
GatherWindows gather_windows(const Conv& conv, bool forward, int pack);

// Taps of a block along slide and inner.
enum class TapTile : unsigned char { k3x3, k4x4, k1x4, k1x8 };
const char* name_of(TapTile tile);
RG_HOST_DEVICE constexpr int slide_of(TapTile tile) {
  return tile == TapTile::k3x3 ? 3 : tile == TapTile::k4x4 ? 4 : 1;
}
RG_HOST_DEVICE constexpr int inner_of(TapTile tile) {
  return tile == TapTile::k3x3 ? 3 : tile == TapTile::k1x8 ? 8 : 4;
}

struct WeightWindows {
  DepthwiseWindows windows;
  TapTile tile;
  FastDiv by_inner_tiles, by_slide_tiles, by_outer_kernel, by_tap_tiles, by_channel_tiles;
  uint32_t items_a_part;
  int64_t parts, weights;  // a sum of each weight a part: a function of the problem, not of the machine
  int64_t blocks;
  double microseconds;  // the same, of sums and of their parts
};
WeightWindows weight_windows(const Conv& conv, int pack);

// Whether threads may take two channels: one a group, side by side, everything else at even distances. The
// addresses must be multiples of two elements, too.
bool can_pack(const Conv& conv);

struct WindowPlace {
  int begin, end, outer, slide, inner;  // begin, end: of the run; slide: of the first of four
};
RG_DEVICE inline WindowPlace place_of(const DepthwiseWindows& p, uint32_t item) {
  WindowPlace at;
  uint32_t outer = p.by_inner.split(item);
  at.inner = static_cast<int>(item);
  uint32_t slot = outer;
  outer = p.by_slots.split(slot);
  at.begin = static_cast<int>(p.by_outer.split(outer)) * p.run_length;
  at.end = at.begin + p.run_length < p.run.results ? at.begin + p.run_length : p.run.results;
  at.outer = static_cast<int>(outer);
  const uint32_t tile = p.by_classes.split(slot);
  at.slide = static_cast<int>(slot) + static_cast<int>(tile) * kSlide * p.spacing;
  return at;
}
// Of the first place of a run.
RG_DEVICE inline int64_t result_offset(const DepthwiseWindows& p, const WindowPlace& at) {
  return int64_t{at.begin} * p.run.result_pitch + int64_t{at.outer} * p.outer.result_pitch +
         int64_t{at.slide} * p.slide.result_pitch + int64_t{at.inner} * p.inner.result_pitch;
}

// Depthwise convolutions with any window and any strides in FP32, FP16 or BF16: one channel of one side a
// group and one to four of the other.
// The result is y where the plan is one of forward, else x.
void windows_gather(const Conv& conv, bool forward, const GatherWindows& plan, Stream stream);
// The workspace holds plan.parts · plan.weights floats.
void windows_grad_weight(const Conv& conv, const WeightWindows& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
