// SPDX-License-Identifier: Apache-2.0
// How the depthwise kernels on planes cut their work. Numbers of parts are the order of sums: functions of
// the problem alone.
#pragma once

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
RG_HOST_DEVICE constexpr int span_steps(int taps, int offset) {
  return (span_reach(offset) * 8 - offset + 7 + taps + 15) / 16;
}
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

}  // namespace retrograd::kernels::cuda
