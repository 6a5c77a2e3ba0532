// SPDX-License-Identifier: Apache-2.0
// Which kernel, and how many parts.
#include "kernels/cuda/depthwise/depthwise_plan.h"

#include <algorithm>

#include "kernels/cuda/depthwise/depthwise.h"

namespace retrograd::kernels::cuda {
namespace {

bool is_same(const Axis& a) { return a.x == a.y && a.stride == 1 && a.pad == a.kernel / 2; }

bool is_small(const Conv& conv, int alignment) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (!is_sixteen_bits(conv) || !is_same(h) || !is_same(w)) return false;
  return is_tiny(conv) || (h.x == kSmallWidth && w.x == kSmallWidth && alignment >= 8);
}

bool is_bands(const Conv& conv, bool grad_input) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  return is_sixteen_bits(conv) && w.kernel >= 5 && is_same(h) && is_same(w) && w.x % 8 == 0 &&
         (grad_input ? w.x <= 256 : w.x <= 8 * kBandsGroups && conv.batch <= 65535 * kBandsWarps);
}

bool is_lines(const Conv& conv) {
  for (int i = 0; i < 2; ++i)
    if (conv.axes[i].x != 1 || conv.axes[i].y != 1 || conv.axes[i].kernel != 1 || conv.axes[i].pad != 0)
      return false;
  const Axis& w = conv.axes[2];
  return w.kernel <= 64 && w.stride == 1 && w.dilation == 1 && (w.x > w.y ? w.x : w.y) < int64_t{1} << 26;
}

}  // namespace

const char* name_of(DepthwiseKernel kernel) {
  static constexpr const char* kNames[] = {"small", "bands", "rows"};
  return kNames[static_cast<size_t>(kernel)];
}

bool has_depthwise_kernel(DepthwiseKernel kernel, const Conv& conv, bool grad_input, int alignment) {
  switch (kernel) {
    case DepthwiseKernel::kSmall:
      return is_small(conv, alignment);
    case DepthwiseKernel::kBands:
      return is_bands(conv, grad_input) && alignment >= 16;
    case DepthwiseKernel::kRows:
      break;
  }
  return true;
}

DepthwiseKernel depthwise_kernel(const Conv& conv, bool grad_input, int alignment) {
  for (const DepthwiseKernel kernel : {DepthwiseKernel::kSmall, DepthwiseKernel::kBands})
    if (has_depthwise_kernel(kernel, conv, grad_input, alignment)) return kernel;
  return DepthwiseKernel::kRows;
}

const char* name_of(TilesKernel kernel) { return kernel == TilesKernel::kSpans ? "spans" : "tiles"; }

TilesKernel tiles_kernel(const Conv& conv, int alignment) {
  const Axis& w = conv.axes[2];
  return is_lines(conv) && is_sixteen_bits(conv) && w.x % 8 == 0 && w.y % 8 == 0 && alignment >= 16 &&
                 conv.batch <= 65535
             ? TilesKernel::kSpans
             : TilesKernel::kTiles;
}

int64_t small_images_in_part(const Conv& conv) {
  constexpr int64_t kWantedBlocks = 528;
  const int64_t wanted = (kWantedBlocks + conv.groups - 1) / conv.groups;
  const int64_t most = (conv.batch + kSmallWarps - 1) / kSmallWarps;  // an image a warp
  const int64_t parts = wanted < most ? wanted : most;
  return (conv.batch + parts - 1) / parts;
}

int64_t depthwise_small_parts(const Conv& conv) {
  const int64_t in_part = small_images_in_part(conv);
  return (conv.batch + in_part - 1) / in_part;
}

Bands bands_of(const Conv& conv) {
  constexpr int kMostImages = 4;
  Bands p;
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  p.height = static_cast<int>(conv.axes[1].x);
  p.width = static_cast<int>(conv.axes[2].x);
  p.groups = p.width / 8;
  p.in_warp = kBandsGroups / p.groups;
  if (p.in_warp > kMostImages) p.in_warp = kMostImages;
  return p;
}

int64_t bands_images_in_part(const Conv& conv) { return int64_t{kBandsWarps} * bands_of(conv).in_warp; }
int64_t depthwise_bands_parts(const Conv& conv) {
  const int64_t in_part = bands_images_in_part(conv);
  return (conv.batch + in_part - 1) / in_part;
}

int most_columns(const Conv& conv) {
  const Axis& w = conv.axes[2];
  const int wide = 16 / static_cast<int>(size_of(conv.x.dtype));
  if (w.stride != 1) return w.x % wide == 0 && w.y % (wide / 2) == 0 ? wide / 2 : 1;
  for (int columns = w.kernel == 7 ? 8 : wide; columns > 1; columns /= 2)
    if (w.x % columns == 0 && w.y % columns == 0) return columns;
  return 1;
}

DepthwiseCut depthwise_cut(const Conv& conv, int columns) {
  constexpr int kBandRows = 32;  // of y that a thread walks at a time, at most
  constexpr int kStridedBandRows = 14, kLongBandRows = 56;
  constexpr int64_t kWantedBlocks = 2112;
  const int rows = conv.axes[2].stride != 1   ? kStridedBandRows
                   : conv.axes[2].kernel == 7 ? kLongBandRows
                                              : kBandRows;
  const int64_t height = conv.axes[1].y;
  DepthwiseCut c;
  c.tiles = (conv.axes[2].y / columns + kDepthwiseThreads - 1) / kDepthwiseThreads;
  c.width = (conv.axes[2].y / columns + c.tiles - 1) / c.tiles;
  c.groups = kDepthwiseThreads / c.width;
  c.bands = (height + rows - 1) / rows;
  c.band_rows = (height + c.bands - 1) / c.bands;
  const int64_t items = conv.batch * c.bands;
  const int64_t rounds = items * conv.groups * c.tiles / (c.groups * kWantedBlocks);
  c.items_in_part = c.groups * (rounds < 1 ? 1 : rounds);
  c.parts = (items + c.items_in_part - 1) / c.items_in_part;
  return c;
}

int64_t depthwise_parts(const Conv& conv, DepthwiseKernel kernel) {
  switch (kernel) {
    case DepthwiseKernel::kSmall:
      return depthwise_small_parts(conv);
    case DepthwiseKernel::kBands:
      return depthwise_bands_parts(conv);
    case DepthwiseKernel::kRows:
      break;
  }
  int64_t most = 0;
  for (int columns = most_columns(conv); columns >= 1; columns /= 2) {
    const DepthwiseCut c = depthwise_cut(conv, columns);
    most = std::max(most, c.parts * c.tiles);
  }
  return most;
}

namespace spans_weight {

Spans spans_of(const Conv& conv) {
  constexpr int kMostTiles = 7;  // of a piece
  constexpr int64_t kWantedBlocks = 512;
  const Axis& w = conv.axes[2];
  Spans p;
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(conv.batch);
  const int64_t wanted = (kWantedBlocks + conv.groups - 1) / conv.groups;
  const int64_t parts = wanted < conv.batch ? wanted : conv.batch;
  p.in_part = static_cast<int>((conv.batch + parts - 1) / parts);
  p.x_groups = static_cast<int>(w.x / 8);
  p.y_groups = static_cast<int>(w.y / 8);
  p.taps = static_cast<int>(w.kernel);
  p.reach = span_reach(static_cast<int>(w.pad));
  p.extra = p.reach * 8 - static_cast<int>(w.pad);
  const int tiles = (p.y_groups + kSpanGroups - 1) / kSpanGroups;
  p.pieces = (tiles + kMostTiles - 1) / kMostTiles;
  p.tiles = (tiles + p.pieces - 1) / p.pieces;
  return p;
}

}  // namespace spans_weight

int64_t depthwise_spans_parts(const Conv& conv) {
  const spans_weight::Spans p = spans_weight::spans_of(conv);
  return (p.images + p.in_part - 1) / p.in_part;
}

int64_t depthwise_tiles_parts(const Conv& conv, TilesKernel kernel) {
  if (kernel == TilesKernel::kSpans) return depthwise_spans_parts(conv);
  const int64_t wanted = (1056 + conv.groups - 1) / conv.groups;
  return wanted < conv.batch ? wanted : conv.batch;
}

}  // namespace retrograd::kernels::cuda
