// SPDX-License-Identifier: Apache-2.0
// How the depthwise kernels on planes cut their work, and those for some kinds of planes. Numbers of parts
// are the order of sums: functions of the problem alone.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline bool is_sixteen_bits(const Conv& conv) {
  return conv.x.dtype == DType::kF16 || conv.x.dtype == DType::kBF16;
}

// depthwise_small: planes of 14 x 14, and those of so few places that a warp reads one in two turns.
inline constexpr int kSmallWidth = 14, kSmallWarps = 4, kTinyPlaces = 64, kTinyWidth = 16;
inline bool is_tiny(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  return h.x <= kTinyWidth && w.x <= kTinyWidth && h.x * w.x <= kTinyPlaces;
}
int64_t small_images_in_part(const Conv& conv);

inline constexpr int kBandsWarps = 4, kBandsGroups = 16;
struct Bands {
  int channels, images, height, width;
  int groups, in_warp;  // groups of a row, images of a warp
};
Bands bands_of(const Conv& conv);

// depthwise_grad_input.cu: x[q] reads the same y with padding kp as x[q + odd], moved by `shift` places of y,
// does with the axis's own: pad = kp + odd + stride·shift, odd less than the stride.
struct RowsShift {
  int64_t odd, shift;
  bool is_multiple(int64_t count) const { return odd == 0 && shift % count == 0; }
};
inline RowsShift rows_shift(const Axis& axis, int64_t kp) {
  const int64_t more = axis.pad - kp, odd = (more % axis.stride + axis.stride) % axis.stride;
  return {odd, (more - odd) / axis.stride};
}

// depthwise_grad_weight.cu
inline constexpr int kDepthwiseThreads = 128;
struct DepthwiseCut {
  int64_t tiles, width, groups, bands, band_rows, items_in_part, parts;
};
// Every group of threads of a block has an item; where there are blocks enough, several.
DepthwiseCut depthwise_cut(const Conv& conv, int columns);
// Columns of y that a thread keeps, at most: addresses, which are not known when parts are counted, may ask
// for fewer.
int most_columns(const Conv& conv);

inline constexpr int kSpanGroups = 16;

// Groups before a group where its window starts, so that `offset` places before it are in the window.
RG_HOST_DEVICE constexpr int span_reach(int offset) {
  return (offset >= 0 ? offset + 7 : offset) / 8;  // rounded up
}
// Fragments of sixteen places that a window takes.
// Groups that the windows of a piece's tiles reach.
RG_HOST_DEVICE constexpr int span_reached(int tiles, int steps) {
  return tiles * kSpanGroups + 2 * steps - 1;
}

namespace spans_weight {
struct Spans {
  int channels, images, in_part;
  int x_groups, y_groups;  // of a line
  int taps, reach, extra;  // a window starts `reach` groups before its group, `extra` places too early
  int pieces, tiles;       // of a line; of a piece
};

Spans spans_of(const Conv& conv);
}  // namespace spans_weight

// In FP16 or BF16 on tensor cores: one channel a group, stride 1, no dilation. The workspace of each
// grad_weight holds a float for each part of each weight.

// Row-major planes of 14x14, or of up to 64 places: kernels of 3x3, 5x5 and 7x7, padding of half a kernel.
void depthwise_small_grad_input(const Conv& conv, Stream stream);
// How many parts the images are cut into.
int64_t depthwise_small_parts(const Conv& conv);
void depthwise_small_grad_weight(const Conv& conv, float* workspace, Stream stream);

// 5x5 and 7x7, padding of half a kernel, row-major planes whose rows are whole chunks of 16 bytes: at most
// 256 columns, in grad_weight 128.
void depthwise_bands_grad_input(const Conv& conv, Stream stream);
int64_t bands_images_in_part(const Conv& conv);
int64_t depthwise_bands_parts(const Conv& conv);
// Leaves sums of parts as [part][channel][tap].
void depthwise_bands_grad_weight(const Conv& conv, float* workspace, Stream stream);

// Along one axis, at most 64 taps, row-major tensors whose lines are whole chunks of 16 bytes. y from x, or
// with forward = false x from y.
void depthwise_spans_gather(const Conv& conv, bool forward, Stream stream);
int64_t depthwise_spans_parts(const Conv& conv);
// Leaves sums of parts as [part][channel][tap].
void depthwise_spans_grad_weight(const Conv& conv, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
