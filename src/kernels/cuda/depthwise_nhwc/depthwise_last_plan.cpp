// SPDX-License-Identifier: Apache-2.0
// Axes as indices, threads, bands, rows in shared memory.
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

#include <algorithm>
#include <numeric>

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kWantedBlocks = 4224, kWantedParts = 1320, kMostBlocks = 16384;
constexpr int64_t kShortestBand = 4;  // tiles, so that rows above a band are few
constexpr int kPlaceBytes = 128;      // a line of memory
constexpr int kMostLanes = 32;        // a warp

int64_t rounded_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What does not matter as it is elsewhere: steps between no outputs, between no taps.
int64_t stride_of(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  return w.y > 1 ? w.stride : h.y > 1 ? h.stride : 1;
}
int64_t dilation_of(const Axis& a) { return a.kernel == 1 ? 1 : a.dilation; }

bool is_trivial(const Axis& a) {
  return a.kernel == 1 && a.pad == 0 && a.x == a.y && (a.stride == 1 || a.y == 1);
}

LastAxis axis_of(const Axis& a, LastForm form, bool to_x, int taps) {
  LastAxis p{};
  p.source = static_cast<int>(to_x ? a.y : a.x);
  p.result = static_cast<int>(to_x ? a.x : a.y);
  p.kernel = static_cast<int>(a.kernel);
  p.step = static_cast<int>(form == LastForm::kDense ? dilation_of(a) : 1);
  if (form == LastForm::kSpread) {
    const int64_t odd = a.pad & 1;
    p.source_at = static_cast<int>((a.pad - odd) / 2 - taps / 2);
    p.result_at = static_cast<int>(-odd);
  } else {
    p.source_at = static_cast<int>(to_x ? a.pad - (a.kernel - 1) * p.step : -a.pad);
  }
  p.residues = std::min(p.step, p.result);
  p.count = static_cast<int>(quotient(p.result - p.result_at, p.step));
  return p;
}

LastRows rows_of(const LastPlan& p, int wide, int unit, int rows, int down) {
  LastRows r;
  r.wide = wide;
  r.unit = unit;
  r.by_image = FastDiv(wide);
  r.image_bytes = (wide + wide / unit * p.gap) * p.place_bytes;
  r.row_bytes = p.group * r.image_bytes;
  r.ring = rows + down * std::min(kLastAhead, p.steps - 1);
  return r;
}

LastPlan plan_of(const Conv& conv, LastPass pass, int most_threads) {
  const auto bytes = static_cast<int>(size_of(conv.x.dtype));
  const bool to_x = pass == LastPass::kGradInput;
  LastPlan p{};
  Axis h = conv.axes[1], w = conv.axes[2];
  int64_t images = conv.batch * conv.axes[0].x;
  p.form = stride_of(conv) == 1 ? LastForm::kDense : to_x ? LastForm::kSpread : LastForm::kStrided;
  if (p.form == LastForm::kDense && is_trivial(h)) {  // lines: as many rows as there are of all images
    h.x = h.y = h.x * images;
    images = 1;
  }
  const int taps = std::max(h.kernel, w.kernel) <= 3 ? 3 : std::max(h.kernel, w.kernel) <= 5 ? 5 : 7;
  p.tile = last_tile(taps, p.form, bytes);
  p.turned = to_x && p.form == LastForm::kDense;
  p.whole = h.kernel == taps && w.kernel == taps;
  p.h = axis_of(h, p.form, to_x, taps);
  p.w = axis_of(w, p.form, to_x, taps);
  p.channels = static_cast<int>(conv.groups);
  p.images = static_cast<int>(images);

  const int lane_bytes = p.tile.vector * bytes;
  const int64_t lanes = quotient(p.channels, p.tile.vector);
  const int64_t most_lanes = std::min(kPlaceBytes / lane_bytes, kMostLanes);
  p.lanes = static_cast<int>(rounded_up(quotient(lanes, quotient(lanes, most_lanes)), 16 / lane_bytes));
  p.channel_blocks = static_cast<int>(quotient(lanes, p.lanes));
  p.place_bytes = p.lanes * lane_bytes;
  p.gap = p.lanes % 32 == 0 ? 0 : 1;  // where a warp is several strips

  const int64_t across = quotient(p.w.count, p.tile.columns), most_strips = most_threads / p.lanes;
  p.strips = static_cast<int>(quotient(across, quotient(across, most_strips)));
  // Two images at least where a row is one strip: each pair of channels has threads for two elements.
  p.group = static_cast<int>(std::max<int64_t>(std::min<int64_t>(images, most_threads / (p.lanes * p.strips)),
                                               p.strips == 1 ? 2 : 1));
  const int64_t segments = quotient(across, p.strips);
  p.tiles = static_cast<int>(quotient(p.h.count, p.tile.rows));
  const int64_t others =
      segments * p.w.residues * p.h.residues * quotient(images, p.group) * p.channel_blocks;
  const int64_t wanted = std::min(quotient(kWantedBlocks, others), quotient(p.tiles, kShortestBand));
  p.steps = static_cast<int>(quotient(p.tiles, wanted));
  const int64_t bands = quotient(p.tiles, p.steps);
  p.segments = FastDiv(segments);
  p.bands = FastDiv(bands);
  p.residues_w = FastDiv(p.w.residues);
  p.residues_h = FastDiv(p.h.residues);
  const int64_t items = others / p.channel_blocks * bands;
  p.items = static_cast<uint32_t>(items);

  p.source = rows_of(p, (p.strips - 1) * p.tile.across + p.tile.source_columns, p.tile.across,
                     p.tile.source_rows, p.tile.down);
  p.results = rows_of(p, p.strips * p.tile.columns, p.tile.columns, p.tile.rows, p.tile.rows);
  p.shared = p.source.ring * p.source.row_bytes;
  const bool weight = pass == LastPass::kGradWeight;
  if (weight) {  // whose threads' sums for a row of taps lie there, too, in the end
    const int sums = taps * p.tile.vector * p.threads() * static_cast<int>(sizeof(float));
    p.shared = std::max(p.shared + p.results.ring * p.results.row_bytes, sums);
  }
  const int64_t rounds = quotient(items, quotient(weight ? kWantedParts : kMostBlocks, p.channel_blocks));
  p.blocks = quotient(items, rounds);
  return p;
}

}  // namespace

bool has_last_form(const Conv& conv) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  const int64_t stride = stride_of(conv);
  for (const Axis* a : {&h, &w}) {
    if (a->kernel > 7 || (a->y > 1 && a->stride != stride)) return false;
    if (stride == 2 && dilation_of(*a) != 1) return false;
  }
  return is_trivial(conv.axes[0]) && stride <= 2;
}

LastPlan last_plan(const Conv& conv, LastPass pass, int64_t shared_bytes) {
  int threads = kLastThreads;
  LastPlan plan = plan_of(conv, pass, threads);
  while (plan.shared > shared_bytes && threads > kMostLanes) plan = plan_of(conv, pass, threads /= 2);
  return plan;
}

int last_chunk(const LastPlan& plan, int element_bytes, int alignment) {
  return std::gcd(std::gcd(plan.channels * element_bytes, alignment), 16);
}

}  // namespace retrograd::kernels::cuda
