// SPDX-License-Identifier: Apache-2.0
// Which cut, and how many parts: the times of a step are measured ones, the rest is counting.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/wgmma_weight.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kTerms = 64;
constexpr uint32_t kProcessors = 132;

struct CutShape {
  WeightCut cut;
  const char* name;
  int m, groups, taps;  // groups of 64 x channels in a block, each of so many taps
  bool many;            // whose groups may belong to different rows of taps
  double step, ends;    // µs: of a step, of a block's beginning and end
};
// Measured on an H200, where long walks run at 700 TFLOP/s.
constexpr std::array<CutShape, 8> kCuts = {
    {{WeightCut::k128x64, "128 x 64", 128, 1, 1, false, 0.40, 3},
     {WeightCut::k128x128, "128 x 128", 128, 2, 1, false, 0.59, 6.2},
     {WeightCut::k128x192, "128 x 192", 128, 3, 1, false, 0.78, 6.2},
     {WeightCut::k128x256, "128 x 256", 128, 4, 1, false, 0.93, 8.2},
     {WeightCut::k128x64Taps, "128 x 64 x 3 taps", 128, 1, 3, false, 0.46, 11},
     {WeightCut::k128x128Taps, "128 x 128 x 3 taps", 128, 2, 3, false, 0.86, 16},
     {WeightCut::k64x192Taps, "64 x 192 x 3 taps", 64, 3, 3, true, 0.79, 11},
     {WeightCut::k64x256Taps, "64 x 256 x 3 taps", 64, 4, 3, true, 0.97, 13}}};
// Walked over as k128x64Taps.
constexpr CutShape kPairs{WeightCut::kPairs, "32 x 32 x 27 taps", 64, 1, 3, false, 0.62, 6};
constexpr double kWholeEnds = 0.6;              // of ends, where results are stored in 16 bits
constexpr double kStored = 2.6e6, kLaunch = 2;  // bytes a microsecond; of a second kernel's beginning and end
constexpr int64_t kFewestChannels = 33;         // fewer leave most of a tile empty
constexpr int kSharedBytes = 225 * 1024;        // of a multiprocessor, barriers aside

int filled(int64_t channels) { return ceil_of(channels, 8) * 8; }

struct Extent {
  int begin, count;
};
// The outputs whose tap lies inside x.
Extent live_outputs(const Axis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.pad;
  const int64_t begin = shift < 0 ? (-shift + a.stride - 1) / a.stride : 0;
  const int64_t end = std::min(a.y, a.x <= shift ? 0 : (a.x - shift + a.stride - 1) / a.stride);
  return {static_cast<int>(begin), static_cast<int>(std::max<int64_t>(end - begin, 0))};
}
// Shifts of one line must not meet what the next one begins with: zeros lie between. And all of x that they
// reach must be in its own line, which is longer where there is more padding before it than behind.
int line_pitch(const Axis& a) {
  const int64_t reach = a.y + (a.kernel - 1) * a.dilation;
  return static_cast<int>(std::max({a.y, reach - a.pad, std::min(a.pad + a.x, reach)}));
}

WeightUnit make_unit(const Conv& conv, const CutShape& cut, int64_t kd, int64_t kh, int64_t kw) {
  const Axis(&a)[3] = conv.axes;
  const Extent all_lines{0, static_cast<int>(a[1].y)};
  const Extent e[3] = {live_outputs(a[0], kd), cut.many ? all_lines : live_outputs(a[1], kh),
                       cut.taps > 1 ? Extent{0, line_pitch(a[2])} : live_outputs(a[2], kw)};
  WeightUnit u{};
  u.first_row =
      static_cast<int>(cut.taps > 1 ? kd * a[1].kernel + kh : (kd * a[1].kernel + kh) * a[2].kernel + kw);
  u.rows = static_cast<int>(cut.many ? a[1].kernel : 1);
  u.steps = static_cast<uint32_t>(ceil_of(conv.batch * e[0].count * e[1].count * e[2].count, kTerms));
  const int64_t taps[3] = {kd, kh, kw};
  for (int i = 0; i < 3; ++i) {
    u.y_first[i] = e[i].begin;
    u.x_first[i] = static_cast<int>(e[i].begin * a[i].stride - a[i].pad + taps[i] * a[i].dilation);
    u.counts[i] = FastDiv(std::max(e[i].count, 1));
  }
  return u;
}

WeightWalk make_walk(const Conv& conv, const CutShape& cut) {
  WeightWalk w{};
  for (int i = 0; i < 3; ++i) {
    const Axis& a = conv.axes[i];
    w.stride[i] = static_cast<int>(a.stride);
    w.dilation[i] = static_cast<int>(a.dilation);
    w.source[i] = static_cast<int>(a.x);
    w.outputs[i] = static_cast<int>(a.y);
    w.kernel[i] = static_cast<int>(a.kernel);
  }
  w.flat = w.source[0] == 1 && w.outputs[0] == 1 && w.kernel[0] == 1;
  w.batch = static_cast<uint32_t>(conv.batch);
  w.rows = static_cast<int>(conv.y_channels);
  w.y_channels = filled(conv.y_channels);
  w.x_channels = filled(conv.x_channels);
  w.across_m = ceil_of(w.y_channels, cut.m);
  w.x_groups = ceil_of(w.x_channels, 64);
  w.taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  w.x_rows = ceil_of(kTerms + (cut.taps - 1) * w.dilation[2], 8) * 8;
  w.weights = conv.y_channels * w.taps * w.x_channels;
  std::vector<WeightUnit> units;
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < (cut.many ? 1 : w.kernel[1]); ++kh)
      for (int64_t kw = 0; kw < (cut.taps > 1 ? 1 : w.kernel[2]); ++kw) {
        units.push_back(make_unit(conv, cut, kd, kh, kw));
        units.back().tiles =
            static_cast<uint32_t>(w.across_m * ceil_of(units.back().rows * w.x_groups, cut.groups));
      }
  // The longest begin first.
  std::stable_sort(units.begin(), units.end(),
                   [](const WeightUnit& a, const WeightUnit& b) { return a.steps > b.steps; });
  std::copy(units.begin(), units.end(), w.units);
  w.unit_count = static_cast<int>(units.size());
  return w;
}

void cut_parts(uint32_t parts, WeightPlan* plan) {
  WeightWalk& w = plan->walk;
  plan->parts = parts;
  plan->blocks = 0;
  for (WeightUnit& u : std::span(w.units, static_cast<size_t>(w.unit_count))) {
    u.part_steps = static_cast<uint32_t>(ceil_of(u.steps, parts));
    u.first_block = plan->blocks;
    plan->blocks += u.tiles * parts;
  }
}

// Blocks in waves, each as long as its first; then parts, which are read once, and the weights.
double estimate(const WeightPlan& plan, const CutShape& cut) {
  const bool whole = plan.results != WeightResults::kParts;
  const double ends = whole ? cut.ends * kWholeEnds : cut.ends;
  double time = 0;
  uint32_t next = 0;
  for (int i = 0; i < plan.walk.unit_count; ++i) {
    const uint32_t end = i + 1 < plan.walk.unit_count ? plan.walk.units[i + 1].first_block : plan.blocks;
    for (; next < end; next += kProcessors) time += plan.walk.units[i].part_steps * cut.step + ends;
  }
  if (plan.results == WeightResults::kInPlace) return time;
  if (whole) return time + static_cast<double>(plan.walk.weights) * 4 / kStored + kLaunch;
  const double megabytes = static_cast<double>(plan.walk.weights) * 1e-6;
  return time + megabytes * (0.76 * static_cast<double>(plan.parts) + 0.6);
}

int shared_bytes(const CutShape& cut, const WeightWalk& walk) {
  return kWeightStages[static_cast<int>(cut.cut)] * (cut.m * kTerms + cut.groups * walk.x_rows * 64) * 2;
}

bool fits(const Conv& conv, const CutShape& cut) {
  const Axis& w = conv.axes[2];
  if (cut.taps > 1 && (w.kernel != cut.taps || w.stride != 1 || w.dilation > 16 || w.pad < 0)) return false;
  const int64_t units =
      conv.axes[0].kernel * (cut.many ? 1 : conv.axes[1].kernel) * (cut.taps > 1 ? 1 : conv.axes[2].kernel);
  return units <= kMostWeightUnits;
}

PlacesMap map_of(const WeightWalk& walk, int64_t channels, const int (&sizes)[3], const int (&first)[3],
                 const int (&step)[3], const WeightUnit& unit, int places) {
  PlacesMap map{};
  map.axes = walk.flat ? 2 : 3;
  map.channels = channels;
  map.batch = walk.batch;
  for (int i = 0; i < 3; ++i) {
    const int axis = 2 - i;
    map.sizes[i] = sizes[axis];
    map.first[i] = first[axis];
    map.step[i] = step[axis];
    map.count[i] = unit.counts[axis].divisor;
  }
  map.places = static_cast<uint32_t>(places);
  return map;
}

bool is_sayable(const WeightWalk& walk, bool many) {
  const int64_t none[3] = {}, reach[3] = {0, many ? (walk.kernel[1] - 1) * int64_t{walk.dilation[1]} : 0, 0};
  for (int i = 0; i < walk.unit_count; ++i)
    if (!is_sayable(weight_y_map(walk, i), none) || !is_sayable(weight_x_map(walk, i), reach)) return false;
  return true;
}

bool plan_pairs(const Conv& conv, WeightPlan* plan) {
  const auto is_plain = [](const Axis& a) {
    return a.kernel == 3 && a.stride == 1 && a.dilation == 1 && a.pad >= 0;
  };
  if (conv.x_channels > 32 || conv.y_channels > 32 || !std::all_of(conv.axes, conv.axes + 3, is_plain))
    return false;
  *plan = {};
  plan->cut = WeightCut::kPairs;
  plan->fills = true;
  plan->results = WeightResults::kParts;
  WeightWalk& w = plan->walk = make_walk(conv, kPairs);
  WeightUnit& u = w.units[0];
  const int64_t counts[3] = {conv.axes[0].y + 1, conv.axes[1].y + 1, line_pitch(conv.axes[2])};
  for (int i = 0; i < 3; ++i) {
    u.y_first[i] = 0;
    u.x_first[i] = static_cast<int>(-conv.axes[i].pad);
    u.counts[i] = FastDiv(counts[i]);
  }
  u.steps = static_cast<uint32_t>(ceil_of(conv.batch * counts[0] * counts[1] * counts[2], kTerms));
  w.unit_count = 1;
  plan->blocks = std::clamp(u.steps / 4, 1u, kProcessors);
  plan->parts = plan->blocks;
  u.part_steps = static_cast<uint32_t>(ceil_of(u.steps, plan->parts));
  plan->microseconds =
      u.part_steps * kPairs.step + kPairs.ends + 0.76e-6 * static_cast<double>(plan->parts * w.weights);
  PlacesMap y = weight_y_map(w, 0);
  --y.first[1], --y.first[2];
  const int64_t none[3] = {}, reach[3] = {0, 2, 2};
  return is_sayable(weight_y_map(w, 0), none) && is_sayable(y, none) && is_sayable(weight_x_map(w, 0), reach);
}

}  // namespace

PlacesMap weight_y_map(const WeightWalk& walk, int unit) {
  const int steps[3] = {1, 1, 1};
  const WeightUnit& u = walk.units[unit];
  return map_of(walk, walk.y_channels, walk.outputs, u.y_first, steps, u, kTerms);
}
PlacesMap weight_x_map(const WeightWalk& walk, int unit) {
  const WeightUnit& u = walk.units[unit];
  return map_of(walk, walk.x_channels, walk.source, u.x_first, walk.stride, u, walk.x_rows);
}

const char* name_of(WeightCut cut) {
  return cut == WeightCut::kPairs ? kPairs.name : kCuts[static_cast<size_t>(cut)].name;
}

bool plan_wgmma_weight(const Conv& conv, WeightResults whole, WeightPlan* plan) {
  if (std::min(conv.x_channels, conv.y_channels) < kFewestChannels) return plan_pairs(conv, plan);
  double least = 0;
  bool found = false;
  for (const CutShape& cut : kCuts) {
    if (!fits(conv, cut)) continue;
    WeightPlan tried{};
    tried.cut = cut.cut;
    tried.walk = make_walk(conv, cut);
    tried.fills = cut.taps > 1;
    if (!is_sayable(tried.walk, cut.many) || shared_bytes(cut, tried.walk) > kSharedBytes) continue;
    uint32_t tiles = 0, steps = 0;
    for (int i = 0; i < tried.walk.unit_count; ++i) {
      tiles += tried.walk.units[i].tiles;
      steps = std::max(steps, tried.walk.units[i].steps);
    }
    const uint32_t most = std::clamp(std::min(3 * kProcessors / tiles, steps / 4), 1u, 256u);
    for (uint32_t parts = 1; parts <= most; ++parts) {
      cut_parts(parts, &tried);
      tried.results = parts == 1 && cut.taps == 1 ? whole : WeightResults::kParts;
      const double time = estimate(tried, cut);
      if (found && time >= least) continue;
      found = true;
      least = time;
      *plan = tried;
      plan->microseconds = time;
    }
  }
  if (found) plan->strides = strides_of(conv, plan->results);
  return found;
}

WeightParts in_walked_parts(WeightParts parts, const WeightPlan& plan) {
  const WeightWalk& walk = plan.walk;
  const Axis(&axes)[3] = parts.conv.axes;
  parts.place_orders = 0;
  if (plan.cut == WeightCut::kPairs) {  // what lies a line or a plane back, as weight_pairs.cu has it
    const WeightUnit& unit = walk.units[0];
    for (int row = 0; row < 9; ++row) {
      const int kd = row / 3, kh = row % 3;
      PartPlaces& places = parts.places[parts.place_orders++];
      places = {
          row * 3, 3, {kh == 2 && kd == 1 ? -1 : 0, kh == 1 ? -1 : 0, 0}, {}, int64_t{unit.part_steps} * 64};
      for (int a = 0; a < 3; ++a) places.count[a] = static_cast<int>(unit.counts[a].divisor);
    }
    return parts;
  }
  const int taps_of_row = plan.cut == WeightCut::k128x64 ? 1 : walk.kernel[2];
  for (int i = 0; i < walk.unit_count; ++i) {
    const WeightUnit& unit = walk.units[i];
    PartPlaces& places = parts.places[parts.place_orders++];
    places = {unit.first_row * taps_of_row, unit.rows * taps_of_row, {}, {}, int64_t{unit.part_steps} * 64};
    if (parts.taps_inside)  // the walk has one tap, whose columns all of them are
      places.taps = static_cast<int>(axes[0].kernel * axes[1].kernel * axes[2].kernel);
    for (int a = 0; a < 3; ++a) {
      places.first[a] = unit.y_first[a];
      places.count[a] = static_cast<int>(unit.counts[a].divisor);
    }
  }
  return parts;
}

}  // namespace retrograd::kernels::cuda
