// SPDX-License-Identifier: Apache-2.0
// How depthwise convolutions along one axis are cut, whatever the length and alignment of the lines. A block
// takes a segment: several whole lines that lie side by side, or a piece of one line. It stages what the
// segment reads, a span of every line, in shared memory as FP32, zeros beyond the line's ends.
//
// A thread's item is eight results of a line, `spacing` apart, that read with the same taps:
//   kSlide   what one reads with tap j the one before reads with tap j + 1: eight products a value
//   kUnit    the same side by side, neither stride nor dilation: the compiler knows where values lie
//   kApart   lanes take neighbouring results, and every product reads its value
#pragma once

#include <cstdint>

#include "kernels/cuda/depthwise_windows/windows_axis.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kOfItem = 8;  // results
inline constexpr int kSegmentThreads = 256;
inline constexpr int64_t kSegmentShared = 96 << 10;  // bytes

enum class ItemKind : unsigned char { kUnit, kSlide, kApart };

struct Segments {
  DepthwiseAxis axis;
  int64_t source_total;  // elements
  int lines, channels;
  int in_block, pieces, piece;  // lines of a block; pieces of a line, results of a piece
  ItemKind kind;
  int spacing, shift;  // of an item's results, and of what they read with the same tap
  int tap_pitch;       // floats of a line's weights in shared memory
  int items, span;     // of a line in a block: items, staged elements in multiples of eight
  FastDiv by_items, by_spacing, by_pieces;
};

struct GatherSegments {
  Segments segments;
  int64_t blocks, shared;  // bytes of shared memory
};
// Strides up to 16, taps that reach 8192 elements, sizes below 2^27, tensors of 31 bits.
GatherSegments gather_segments(const Conv& conv, bool forward);

struct WeightSegments {
  Segments segments;
  int strip_taps, strips;  // a strip's taps are a thread's
  int workers;             // threads of a strip that share the items of a line
  int y_span;              // staged elements of a line of y
  int threads;
  int channel_tiles, rounds;  // rounds: images and pieces of a part
  int64_t parts, weights;     // a sum of each weight a part
  int64_t blocks, shared;
};
WeightSegments weight_segments(const Conv& conv);

// The share of an item's products that are of the convolution.
double filled(const Segments& p);

// The lowest place of the source that results from `begin` on read.
RG_DEVICE inline int lowest_read(const DepthwiseAxis& a, int begin) {
  if (!a.matched) return begin * a.stride - a.pad;
  const int from = begin + a.pad - (a.kernel - 1) * a.dilation;
  return from >= 0 ? from / a.stride : -((a.stride - 1 - from) / a.stride);
}

// Eight floats and a gap: threads that read eight apart find different banks. padded(8·i + j) is padded(8·i)
// + padded(j).
RG_HOST_DEVICE constexpr int padded(int index) { return index + (index >> 3); }

// Depthwise convolutions along one axis, one channel a group, on row-major tensors of FP32, FP16 or BF16:
// lines of any length and alignment, strides, dilation.
// y from x, or with forward = false x from y.
void segments_gather(const Conv& conv, bool forward, const GatherSegments& plan, Stream stream);
// The workspace holds plan.parts · plan.weights floats.
void segments_grad_weight(const Conv& conv, const WeightSegments& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
