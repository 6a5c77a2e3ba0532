// SPDX-License-Identifier: Apache-2.0
// Lengths of segments, and parts: functions of the problem alone.
#include "kernels/cuda/depthwise_windows/segments_plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kMostResults = 1920, kFewestResults = 512;  // of a segment: vectors for 256 threads
constexpr int64_t kLongestPiece = 4096;                       // where the taps reach far
constexpr int64_t kMostSource = 4096;                         // of a segment with a stride
constexpr int64_t kEnoughBlocks = 528;
constexpr int64_t kWeightBlocks = 1056;  // at most, where that is enough
constexpr int64_t kMostTerms = 256;      // of a thread's sum, unless a single round has more
constexpr double kFilledEnough = 0.6;

int64_t staged_floats(int64_t elements) { return elements + elements / 8 + 1; }

void set_items(Segments& p) {
  const DepthwiseAxis& a = p.axis;
  const int64_t places = std::min(p.piece, a.results);
  const int64_t matching = a.matched ? std::lcm(int64_t{a.stride}, int64_t{a.dilation}) : 1;
  const int64_t sliding = a.matched ? matching : a.dilation % a.stride == 0 ? a.dilation / a.stride : 0;
  const bool slide =
      sliding > 0 &&
      static_cast<double>(places) >=
          kFilledEnough * static_cast<double>(ceil_div(places, kOfItem * sliding) * kOfItem * sliding);
  p.kind = !slide                                           ? ItemKind::kApart
           : !a.matched && a.stride == 1 && a.dilation == 1 ? ItemKind::kUnit
                                                            : ItemKind::kSlide;
  const int64_t spacing = slide ? sliding : ceil_div(ceil_div(places, kOfItem), matching) * matching;
  p.spacing = static_cast<int>(spacing);
  p.shift = static_cast<int>(a.matched ? spacing / a.stride : spacing * a.stride);
  const int64_t tiles = slide ? ceil_div(places, kOfItem * spacing) : 1;
  p.items = static_cast<int>(slide ? tiles * spacing : std::min(spacing, places));
  p.span = ceil_of(extent(a, slide ? tiles * kOfItem * spacing : places), 8) * 8;
  p.by_items = FastDiv(p.items);
  p.by_spacing = FastDiv(p.spacing);
}

// most_lines: of a block. extra: floats of a line in shared memory, beside the span and the results.
void cut(Segments& p, int64_t lines, int64_t most_lines, int64_t extra) {
  const DepthwiseAxis& a = p.axis;
  const int64_t of_block = std::clamp(lines * a.results / kEnoughBlocks, kFewestResults, kMostResults);
  const int64_t reach = int64_t{a.kernel - 1} * a.dilation / (a.matched ? 1 : a.stride);
  int64_t longest = std::max(of_block, std::min(reach, kLongestPiece));
  if (!a.matched) longest = std::min(longest, kMostSource / a.stride);
  const int64_t wanted = ceil_div(a.results, longest);
  p.piece = static_cast<int>(ceil_div(ceil_div(a.results, wanted), int64_t{8}) * 8);
  p.pieces = ceil_of(a.results, p.piece);
  p.by_pieces = FastDiv(p.pieces);
  set_items(p);
  p.in_block = 1;
  if (p.pieces > 1) return;
  const int64_t floats = staged_floats(p.span) + staged_floats(p.piece) + extra;
  const int64_t fitting = std::max<int64_t>((kSegmentShared / 2) / 4 / floats, 1);
  const int64_t by_source = std::max<int64_t>(kMostSource / p.span, 1);
  p.in_block = static_cast<int>(
      std::clamp<int64_t>(std::min({of_block / a.results, fitting, by_source}), 1, most_lines));
}

Segments segments_on(const Conv& conv, bool forward) {
  Segments p{};
  p.axis = window_axis(conv.axes[2], forward, 1, 1);
  p.channels = static_cast<int>(conv.groups);
  p.lines = static_cast<int>(conv.batch * conv.groups);
  p.source_total = int64_t{p.lines} * p.axis.source;
  return p;
}

}  // namespace

GatherSegments gather_segments(const Conv& conv, bool forward) {
  GatherSegments g{};
  Segments& p = g.segments;
  p = segments_on(conv, forward);
  p.tap_pitch = ceil_of(p.axis.kernel, 4) * 4;
  cut(p, p.lines, p.lines, p.tap_pitch);
  const int64_t results = int64_t{p.in_block} * (p.pieces > 1 ? p.piece : p.axis.results);
  g.blocks = ceil_div(p.lines, p.in_block) * p.pieces;
  g.shared = 4 * (staged_floats(int64_t{p.in_block} * p.span) + staged_floats(results) +
                  int64_t{p.in_block} * p.tap_pitch);
  return g;
}

WeightSegments weight_segments(const Conv& conv) {
  WeightSegments w{};
  Segments& p = w.segments;
  p = segments_on(conv, true);
  w.strip_taps = p.axis.kernel <= 4 ? 4 : 8;
  w.strips = ceil_of(p.axis.kernel, w.strip_taps);
  cut(p, p.lines, std::min(p.channels, kSegmentThreads / w.strips), 0);
  w.workers = std::min(p.items, kSegmentThreads / (w.strips * p.in_block));
  w.threads = ceil_of(int64_t{w.workers} * w.strips * p.in_block, 32) * 32;
  w.channel_tiles = ceil_of(p.channels, p.in_block);
  const int64_t all = conv.batch * p.pieces;
  const int64_t wanted = std::clamp<int64_t>(kWeightBlocks / w.channel_tiles, 1, all);
  const int64_t terms = kOfItem * ceil_div(p.items, w.workers);  // of a round
  w.rounds = static_cast<int>(std::clamp<int64_t>(kMostTerms / terms, 1, ceil_div(all, wanted)));
  w.parts = ceil_div(all, w.rounds);
  w.weights = conv.groups * conv.axes[2].kernel;
  w.blocks = w.parts * w.channel_tiles;
  w.y_span = ceil_of(std::min(p.piece, p.axis.results), 8) * 8;
  const int64_t staged =
      staged_floats(int64_t{p.in_block} * p.span) + staged_floats(int64_t{p.in_block} * w.y_span);
  w.shared = 4 * std::max(staged, int64_t{w.threads} * (w.strip_taps + 1));
  return w;
}

double filled(const Segments& p) {
  const int places = std::min(p.piece, p.axis.results);
  return std::min(1.0, static_cast<double>(places) / (double{kOfItem} * p.items));
}

}  // namespace retrograd::kernels::cuda
