// SPDX-License-Identifier: Apache-2.0
// Roles of axes, shapes of blocks, numbers of parts.
#include "kernels/cuda/depthwise_windows/windows_plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/checked.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kEnoughBlocks = 2112;  // of a gather: beyond, blocks share weights for several items
constexpr int64_t kMostRounds = 4;
constexpr int64_t kEnoughThreads = 200000;
constexpr int64_t kWeightBlocks = 1056;  // of grad_weight
constexpr int64_t kFewPlaces = 4;        // of a thread, for which it adds up a tile's sums
constexpr int64_t kMostPlaces = 64;      // of a thread: 256 terms
constexpr int64_t kLongestRun = 32;

using Axes4 = std::array<DepthwiseAxis, 4>;  // N, D, H, W

Axes4 axes_of(const Conv& conv, bool forward) {
  const Tensor &result = forward ? conv.y : conv.x, &source = forward ? conv.x : conv.y;
  const Axis images{conv.batch, conv.batch, 1, 1, 1, 0};
  Axes4 axes;
  axes[0] = window_axis(images, true, result.strides[0], source.strides[0]);
  for (size_t i = 1; i < 4; ++i)
    axes[i] = window_axis(conv.axes[i - 1], forward, result.strides[i + 1], source.strides[i + 1]);
  return axes;
}

// How far apart in memory neighbours are.
int64_t distance(int result_pitch, int source_pitch) {
  return std::abs(int64_t{result_pitch}) + std::abs(int64_t{source_pitch});
}
int64_t distance(const DepthwiseAxis& axis) { return distance(axis.result_pitch, axis.source_pitch); }

// What its neighbours are closest in, axes of one result aside; 4: all have one.
size_t closest(const Axes4& axes, size_t except) {
  size_t best = 4;
  for (size_t i = 4; i-- > 0;)
    if (i != except && axes[i].results > 1 && (best == 4 || distance(axes[i]) < distance(axes[best])))
      best = i;
  return best;
}
size_t inner_beside(const Axes4& axes, size_t slide) {
  const size_t best = closest(axes, slide);
  if (best != 4) return best;
  size_t longest = slide == 3 ? 2 : 3;
  for (size_t i = 4; i-- > 0;)
    if (i != slide && axes[i].kernel > axes[longest].kernel) longest = i;
  return longest;
}

int64_t tiles_of(const DepthwiseAxis& a) { return ceil_div(ceil_div(a.results, spacing_of(a)), kSlide); }
// Results of a tile that are there, on average.
double filled(const DepthwiseAxis& a) {
  return static_cast<double>(a.results) / static_cast<double>(spacing_of(a) * tiles_of(a));
}
double even(int64_t total, int64_t most) {
  return static_cast<double>(total) / static_cast<double>(ceil_div(total, most));
}

int chunk_of(const DepthwiseAxis& a) { return shares(a) ? kChunk : 1; }
double loads_of(const DepthwiseAxis& slide) {
  const double v = filled(slide), t = even(most_taps(slide), chunk_of(slide));
  return 1 / v + (v + t - 1) / (v * t);
}

TapTile tap_tile(const DepthwiseAxis& slide, const DepthwiseAxis& inner) {
  if (!shares(slide) || slide.kernel == 1) return inner.kernel <= 4 ? TapTile::k1x4 : TapTile::k1x8;
  const auto tiles = [&](int64_t side) {
    return ceil_div(slide.kernel, side) * ceil_div(inner.kernel, side);
  };
  return 4 * tiles(3) <= 5 * tiles(4) ? TapTile::k3x3 : TapTile::k4x4;  // as long as they take
}
double loads_of(const DepthwiseAxis& slide, const DepthwiseAxis& inner) {
  const TapTile tile = tap_tile(slide, inner);
  const double v = filled(slide), s = even(slide.kernel, slide_of(tile)),
               i = even(inner.kernel, inner_of(tile));
  return (v + s - 1) / (v * s) + 1 / (s * i);
}

struct Roles {
  size_t slide, inner;
  double loads;
};
// cost(slide, inner): loads of a product.
template <class Cost>
Roles roles_of(const Axes4& axes, bool channels_inside, Cost&& cost) {
  const size_t across = channels_inside ? 4 : closest(axes, 4);  // which lanes need
  Roles best{4, 4, 0};
  for (const size_t slide : {size_t{2}, size_t{1}, size_t{3}, size_t{0}}) {
    if (slide == across) continue;
    const size_t inner = inner_beside(axes, slide);
    const double loads = cost(axes[slide], axes[inner]);
    if (best.slide == 4 || loads < best.loads) best = {slide, inner, loads};
  }
  return best;
}

void set_axes(DepthwiseWindows& p, const Conv& conv, const Axes4& axes, const Roles& roles) {
  const auto kh = static_cast<int>(conv.axes[1].kernel), kw = static_cast<int>(conv.axes[2].kernel);
  const std::array<int, 4> numbers = {0, kh * kw, kw, 1};
  p.slide = axes[roles.slide], p.slide_taps = numbers[roles.slide];
  p.inner = axes[roles.inner], p.inner_taps = numbers[roles.inner];
  std::array<size_t, 2> others{};
  for (size_t i = 0, n = 0; i < 4; ++i)
    if (i != roles.slide && i != roles.inner) others[n++] = i;
  if (axes[others[0]].results < axes[others[1]].results) std::swap(others[0], others[1]);
  const auto [run, outer] = others;
  p.run = axes[run], p.run_taps = numbers[run];
  p.outer = axes[outer], p.outer_taps = numbers[outer];
  p.taps = static_cast<int>(conv.axes[0].kernel) * kh * kw;
  const int64_t spacing = spacing_of(p.slide), slots = spacing * tiles_of(p.slide);
  p.spacing = static_cast<int>(spacing);
  p.spread = shares(p.slide) ? p.slide.step : p.slide.stride;
  p.row_pitch = int64_t{p.spread} * p.slide.source_pitch;
  p.spaced_pitch = spacing * p.slide.result_pitch;
  p.column_pitch = p.inner.step * p.inner.source_pitch;
  p.by_classes = FastDiv(spacing);
  p.by_slots = FastDiv(slots);
  p.by_inner = FastDiv(p.inner.results);
  p.by_outer = FastDiv(p.outer.results);
  p.chunk = chunk_of(p.slide);
  p.by_chunk_step = FastDiv(int64_t{p.chunk} * p.slide.step);
}

void set_channels(DepthwiseWindows& p, const Conv& conv, bool forward, int64_t channels) {
  p.channels = static_cast<int>(channels);
  p.result_channel = static_cast<int>((forward ? conv.y : conv.x).strides[1]);
  p.source_channel = static_cast<int>((forward ? conv.x : conv.y).strides[1]);
}
bool are_channels_inside(const DepthwiseWindows& p, const Axes4& axes) {
  const size_t across = closest(axes, 4);
  return p.channels > 1 &&
         (across == 4 || distance(p.result_channel, p.source_channel) < distance(axes[across]));
}

// Runs as long as leave enough threads, `tiles` for each item and channel.
void set_run(DepthwiseWindows& p, int pack, int64_t tiles, int64_t longest) {
  const int64_t beside = int64_t{p.outer.results} * p.by_slots.divisor * p.inner.results;
  const int64_t threads = beside * p.run.results * ceil_div(p.channels, p.channels_inside ? pack : 1) * tiles;
  p.run_length = static_cast<int>(
      std::clamp<int64_t>(threads / kEnoughThreads, 1, std::min<int64_t>(longest, p.run.results)));
  const int64_t runs = ceil_div(p.run.results, p.run_length);
  p.run_length = ceil_of(p.run.results, runs);  // as long as each other
  p.items = static_cast<uint32_t>(beside * runs);
}

// weights: floats of a channel that lie in shared memory.
void set_block(DepthwiseWindows& p, int pack, int64_t fewest_lanes, int64_t weights) {
  if (!p.channels_inside) pack = 1;
  p.pack = pack;
  const int64_t wide = ceil_div(p.channels, pack);
  const int64_t floats = kWindowsShared / static_cast<int64_t>(sizeof(float));
  int64_t lanes, rows;
  if (p.channels_inside) {
    lanes = ceil_div(wide, ceil_div(wide, kWarp));
    if (weights > 0) lanes = std::min(lanes, (floats / weights - 2) / pack);
    rows = std::min<int64_t>(kWindowsThreads / lanes, p.items);
    p.tap_pitch = static_cast<int>(lanes * pack + 2);  // few taps of a channel in one bank
    p.channel_pitch = 1;
  } else {
    lanes = fewest_lanes;
    while (lanes < kWindowsThreads && lanes < p.items) lanes *= 2;
    rows = std::min(kWindowsThreads / lanes, wide);
    p.tap_pitch = 1;
    p.channel_pitch = static_cast<int>(weights | 1);
    rows = std::min(rows, floats / p.channel_pitch);
  }
  p.lanes = static_cast<int>(lanes), p.rows = static_cast<int>(rows);
  p.channel_tiles = ceil_of(wide, p.channels_inside ? lanes : rows);
}
int64_t items_at_once(const DepthwiseWindows& p) { return p.channels_inside ? p.rows : p.lanes; }

constexpr double kSchedulers = 4 * 132 * 1700;  // warps' cycles of an H200 in a microsecond
double warps_of(const DepthwiseWindows& p) { return static_cast<double>(ceil_div(p.lanes * p.rows, kWarp)); }

// Cycles of a warp: of an item, of a place of its run, of a chunk of taps, of a row that is loaded, of a
// product, of a thread's weight that is staged. A block by itself waits for taps and for weights.
double microseconds_of(const GatherWindows& g) {
  constexpr double kItem = 370, kPlace = 520, kOfChunk = 5.4, kRow = 12, kProduct = 0.75, kWeight = 145;
  constexpr double kTapAlone = 0.02, kWeightAlone = 0.23;  // microseconds
  const DepthwiseWindows& p = g.windows;
  const double columns =
      static_cast<double>(most_taps(p.inner)) * most_taps(p.outer) * most_taps(p.run) * p.sources;
  const double taps = most_taps(p.slide), chunks = ceil_of(most_taps(p.slide), p.chunk);
  const double column =
      kOfChunk * chunks + kRow * ((kSlide - 1) * chunks + taps) + kProduct * taps * kSlide * p.pack;
  const double weights = static_cast<double>(p.taps) * p.sources *
                         (p.channels_inside ? p.lanes * p.pack : p.rows) / (p.lanes * p.rows);
  const double rounds = ceil_of(p.items, items_at_once(p) * p.item_blocks);
  const double warp = rounds * (kItem + p.run_length * (kPlace + columns * column)) + kWeight * weights;
  return std::max(static_cast<double>(g.blocks) * warps_of(p) * warp / kSchedulers,
                  rounds * p.run_length * columns * taps * kTapAlone + kWeightAlone * weights);
}

// The same of a tile of taps, whose sums a block adds up.
double microseconds_of(const WeightWindows& w) {
  constexpr double kItem = 120, kPlace = 26, kRow = 10, kPacked = 1.2, kProduct = 0.7, kSum = 18;
  constexpr double kPlaceAlone = 0.62, kParts = 2.6e5;  // microseconds; sums a microsecond
  const DepthwiseWindows& p = w.windows;
  const double taps = slide_of(w.tile) * inner_of(w.tile),
               rows = (kSlide + slide_of(w.tile) - 1) * inner_of(w.tile) + kSlide;
  const double place =
      kPlace + (kRow * rows + kProduct * taps * kSlide) * (p.pack == 1 ? 1 : kPacked * p.pack);
  const double rounds = ceil_of(w.items_a_part, items_at_once(p));
  const double warp = rounds * (kItem + p.run_length * place) + kSum * taps * p.pack;
  return std::max(static_cast<double>(w.blocks) * warps_of(p) * warp / kSchedulers,
                  rounds * p.run_length * kPlaceAlone) +
         static_cast<double>(w.parts * w.weights) / kParts;
}

}  // namespace

const char* name_of(TapTile tile) {
  static constexpr const char* kNames[] = {"3 x 3 taps", "4 x 4 taps", "1 x 4 taps", "1 x 8 taps"};
  return kNames[static_cast<size_t>(tile)];
}

GatherWindows gather_windows(const Conv& conv, bool forward, int pack) {
  GatherWindows g{};
  DepthwiseWindows& p = g.windows;
  const int64_t results = forward ? conv.y_channels : conv.x_channels;
  p.sources = static_cast<int>(forward ? conv.x_channels : conv.y_channels);
  set_channels(p, conv, forward, conv.groups * results);
  p.by_source = FastDiv(results);
  p.kernels = depthwise_kernels(conv, forward);

  const Axes4 axes = axes_of(conv, forward);
  p.channels_inside = are_channels_inside(p, axes);
  const Roles roles = roles_of(axes, p.channels_inside, [](const DepthwiseAxis& slide, const DepthwiseAxis&) {
    return loads_of(slide);
  });
  set_axes(p, conv, axes, roles);
  set_run(p, pack, 1, kLongestRun);
  set_block(p, pack, 8, int64_t{p.taps} * p.sources);
  const int64_t chunks = ceil_div(p.items, items_at_once(p));
  const int64_t rounds =
      p.channels_inside ? std::clamp<int64_t>(chunks * p.channel_tiles / kEnoughBlocks, 1, kMostRounds) : 1;
  p.item_blocks = ceil_of(chunks, rounds);
  g.blocks = int64_t{p.item_blocks} * p.channel_tiles;
  g.microseconds = microseconds_of(g);
  return g;
}

WeightWindows weight_windows(const Conv& conv, int pack) {
  WeightWindows w{};
  DepthwiseWindows& p = w.windows;
  p.sources = 1;
  set_channels(p, conv, true, conv.groups * conv.y_channels * conv.x_channels);
  p.by_result = FastDiv(conv.x_channels);
  p.by_source = FastDiv(conv.y_channels);

  const Axes4 axes = axes_of(conv, true);
  p.channels_inside = are_channels_inside(p, axes);
  const Roles roles =
      roles_of(axes, p.channels_inside,
               [](const DepthwiseAxis& slide, const DepthwiseAxis& inner) { return loads_of(slide, inner); });
  w.tile = tap_tile(axes[roles.slide], axes[roles.inner]);
  set_axes(p, conv, axes, roles);
  const int64_t slide_tiles = ceil_div(p.slide.kernel, slide_of(w.tile));
  const int64_t inner_tiles = ceil_div(p.inner.kernel, inner_of(w.tile));
  const int64_t tap_tiles = int64_t{p.run.kernel} * p.outer.kernel * slide_tiles * inner_tiles;
  set_run(p, pack, tap_tiles, kLongestRun);
  set_block(p, pack, kWarp, 0);
  w.by_slide_tiles = FastDiv(slide_tiles);
  w.by_inner_tiles = FastDiv(inner_tiles);
  w.by_outer_kernel = FastDiv(p.outer.kernel);
  w.by_tap_tiles = FastDiv(tap_tiles);
  w.by_channel_tiles = FastDiv(p.channel_tiles);
  const int64_t rounds = ceil_div(p.items, items_at_once(p));
  const int64_t places = rounds * p.run_length;
  const int64_t wanted =
      std::min(ceil_div(kWeightBlocks, tap_tiles * p.channel_tiles), ceil_div(places, kFewPlaces));
  const int64_t of_part = ceil_div(rounds, std::min(rounds, std::max(wanted, ceil_div(places, kMostPlaces))));
  w.items_a_part = static_cast<uint32_t>(of_part * items_at_once(p));
  w.parts = ceil_div(rounds, of_part);
  w.weights = int64_t{p.channels} * p.taps;
  w.blocks = w.parts * tap_tiles * p.channel_tiles;
  w.microseconds = microseconds_of(w);
  return w;
}

bool can_pack(const Conv& conv) {
  constexpr int64_t kMostTaps = 2048;  // whose weights for two channels fit into shared memory
  if (conv.x_channels != 1 || conv.y_channels != 1 || conv.groups % 2 != 0 || size_of(conv.x.dtype) != 2 ||
      conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel > kMostTaps)
    return false;
  for (const Tensor* tensor : {&conv.x, &conv.y}) {
    if (tensor->strides[1] != 1 || (conv.batch > 1 && tensor->strides[0] % 2 != 0)) return false;
    for (int i = 0; i < 3; ++i) {
      const int64_t size = tensor == &conv.x ? conv.axes[i].x : conv.axes[i].y;
      if (size > 1 && tensor->strides[i + 2] % 2 != 0) return false;
    }
  }
  return true;
}

}  // namespace retrograd::kernels::cuda
