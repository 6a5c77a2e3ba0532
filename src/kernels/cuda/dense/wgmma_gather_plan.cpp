// SPDX-License-Identifier: Apache-2.0
// Tiles by their measured times.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/dense/wgmma_gather.h"

namespace retrograd::kernels::cuda {
namespace wgather {
namespace {

// Microseconds of a tile's step, so many channels of a tap or of its shared taps, on a GPU that is almost
// idle and on a busy one, and of writing its results: measured on an H200, those by thirty-twos
// estimated. Two teams that take turns in multiplying and writing gained 1 to 3 %.
struct Pace {
  GatherShape shape;
  const char* name;
  int places, channels, groups, shared, step_channels, packed;  // packed: loads of so many channels a step
  int blocks;                                                   // of a multiprocessor
  double idle, busy, store;
};
constexpr Pace kPaces[] = {
    {GatherShape::k128x128, "128 x 128", 128, 128, 2, 1, 64, 1, 1, .31, .48, 2.0},
    {GatherShape::k192x128, "192 x 128", 192, 128, 3, 1, 64, 1, 1, .45, .61, 3.0},
    {GatherShape::k128x256, "128 x 256", 128, 256, 2, 1, 64, 1, 1, .57, .70, 3.0},
    {GatherShape::k128x160, "128 x 160", 128, 160, 2, 1, 64, 1, 1, .40, .55, 2.3},
    {GatherShape::k256x64, "256 x 64", 256, 64, 2, 1, 64, 1, 1, .50, .62, 2.5},
    {GatherShape::k128x64Pairs, "128 x 64 in pairs", 128, 64, 2, 1, 64, 1, 2, .25, .36, 1.3},
    {GatherShape::k128x128By16, "128 x 128 by sixteens", 128, 128, 2, 1, 16, 4, 1, .5, .8, 2.0},
    {GatherShape::k128x64By16, "128 x 64 by sixteens", 128, 64, 2, 1, 16, 4, 2, .4, .6, 1.3},
    {GatherShape::k128x128By32, "128 x 128 by thirty-twos", 128, 128, 2, 1, 32, 2, 1, .38, .58, 2.0},
    {GatherShape::k128x256By32, "128 x 256 by thirty-twos", 128, 256, 2, 1, 32, 2, 1, .62, .80, 3.0},
    {GatherShape::k256x64Shared, "256 x 64 of shared taps", 256, 64, 2, 3, 64, 1, 1, 1.0, 1.08, 2.5},
    {GatherShape::k512x32Shared, "512 x 32 of shared taps", 512, 32, 2, 3, 32, 1, 1, .8, .9, 2.5},
};
// Blocks that a GPU hardly notices, and that keep it busy.
constexpr double kIdle = 24, kBusy = 84;
constexpr int64_t kProcessors = 132;
constexpr int64_t kFewestSteps = 4;                // of a share
constexpr double kCluster = 1.5, kFetched = 60e3;  // microseconds of two barriers; bytes in one
constexpr int kMostShares = 8;
constexpr double kTurn = 0.4;    // microseconds in which neither block of a pair multiplies
constexpr double kWorth = 0.95;  // of the time with fewer shares

// Clusters of so many blocks that run at the same time: each lies in one of seven sixteens and a fourteen of
// multiprocessors. (Sixteen clusters of eight took turns on an H200, and 24 of five.)
int64_t clusters_at_once(int64_t blocks) { return 7 * (16 / blocks) + 14 / blocks; }

const Tensor& result_of(const GatherProduct& product) {
  return product.forward ? product.conv.y : product.conv.x;
}

bool is_walkable(const GatherProduct& product, const ProductAxes& axes, bool shared) {
  int64_t reach[3];
  for (size_t i = 0; i < 3; ++i) reach[2 - i] = reach_of(axes[i]);
  return is_sayable(places_of(product, axes, row_channels(product) * product.conv.groups, shared), reach);
}

bool is_possible(const GatherProduct& product, std::span<const ProductAxes> residues, const Pace& pace) {
  return pace.shared == 1 || std::all_of(residues.begin(), residues.end(), [&](const ProductAxes& axes) {
           const ProductAxis& w = axes[2];
           return w.taps == pace.shared && w.step == 1 && reach_of(w) <= kMostHalo &&
                  result_of(product).strides[1] == 1 && is_walkable(product, axes, true);
         });
}

// Tiles of a product, and the steps of one.
struct Work {
  int64_t tiles, steps;
};
Work work_of(const GatherProduct& product, const ProductAxes& axes, const Pace& pace) {
  const Conv& conv = product.conv;
  int64_t places = conv.batch, steps = ceil_div(row_channels(product), pace.step_channels);
  for (size_t a = 0; a < 3; ++a) {
    const bool shares = a == 2 && pace.shared > 1;
    places *= axes[a].results + (shares ? reach_of(axes[a]) : 0);
    steps *= shares ? 1 : axes[a].taps;
  }
  const int64_t columns = product.forward ? conv.y_channels : conv.x_channels;
  return {ceil_div(places, pace.places) * ceil_div(columns, pace.channels) * conv.groups,
          ceil_div(steps, int64_t{pace.packed})};
}

// What a block does for a tile beside its steps.
double rest_of(const Pace& pace, int shares) {
  if (shares == 1) return pace.store;
  const int units = pace.places / pace.groups / 64 * pace.channels / 32;
  const auto fetched = static_cast<double>(ceil_div(units, shares) * shares * pace.groups * 64 * 32 * 4);
  return kCluster + fetched / kFetched + pace.store / std::min(shares, units);
}

// A round of tiles, of which this is the longest: a pair multiplies one after the other.
double round_time(const Pace& pace, int64_t steps, double step, int shares, bool full) {
  const double products = static_cast<double>(ceil_div(steps, int64_t{shares})) * step,
               one = products + rest_of(pace, shares);
  return pace.blocks == 2 && full ? std::max(one, 2 * (products + kTurn)) : one;
}

// The time of all tiles in rounds of as many as there is room for, longest first. Tiles and shares add in
// different orders, so multiprocessors are 132 whatever the machine has.
double time_of(const GatherProduct& product, std::span<const ProductAxes> residues, const Pace& pace,
               int shares) {
  const int64_t round = shares == 1 ? kProcessors * pace.blocks : clusters_at_once(shares);
  int64_t tiles = 0;
  for (const ProductAxes& axes : residues) tiles += work_of(product, axes, pace).tiles;
  const auto blocks = static_cast<double>(std::min(tiles, round) * shares);
  const double step =
      pace.idle + (pace.busy - pace.idle) * std::clamp((blocks - kIdle) / (kBusy - kIdle), 0.0, 1.0);
  double time = 0;
  int64_t before = 0;
  for (const ProductAxes& axes : residues) {
    const Work work = work_of(product, axes, pace);
    const int64_t rounds = ceil_div(before + work.tiles, round) - ceil_div(before, round);
    before += work.tiles;
    time += static_cast<double>(rounds) * round_time(pace, work.steps, step, shares, tiles > kProcessors);
  }
  return time;
}

}  // namespace

PlacesMap places_of(const GatherProduct& product, const ProductAxes& axes, int64_t channels, bool shared) {
  PlacesMap map{};
  map.axes = axes[0].source == 1 && axes[0].results == 1 && axes[0].taps == 1 && axes[0].first == 0 ? 2 : 3;
  map.channels = channels;
  map.batch = product.conv.batch;
  for (size_t a = 0; a < 3; ++a) {
    const ProductAxis& axis = axes[a];
    const int64_t back = axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0;
    map.sizes[2 - a] = axis.source;
    map.first[2 - a] = axis.first + back;
    map.step[2 - a] = axis.step;
    map.count[2 - a] = axis.results + (shared && a == 2 ? reach_of(axis) : 0);
  }
  return map;
}

namespace {

GatherLaunch choose(const GatherProduct& product, std::span<const ProductAxes> residues) {
  GatherLaunch best{residues, GatherShape::k128x128, 1, 0};
  for (const Pace& pace : kPaces) {
    if (!is_possible(product, residues, pace)) continue;
    int64_t steps = 0;
    for (const ProductAxes& axes : residues) steps = std::max(steps, work_of(product, axes, pace).steps);
    double least = 0;
    const int64_t most = pace.blocks == 1 ? std::clamp<int64_t>(steps / kFewestSteps, 1, kMostShares) : 1;
    for (int shares = 1; shares <= most; ++shares) {
      const double time = time_of(product, residues, pace, shares);
      if (least > 0 && time > kWorth * least) continue;
      least = time;
      if (best.microseconds == 0 || time < best.microseconds) best = {residues, pace.shape, shares, time};
    }
  }
  return best;
}

}  // namespace
}  // namespace wgather

const char* name_of(GatherShape shape) {
  return std::find_if(std::begin(wgather::kPaces), std::end(wgather::kPaces),
                      [&](const wgather::Pace& pace) { return pace.shape == shape; })
      ->name;
}

std::vector<GatherLaunch> wgmma_gather_launches(const GatherProduct& product,
                                                std::span<const ProductAxes> residues) {
  std::vector<GatherLaunch> launches;
  for (; !residues.empty(); residues = residues.subspan(launches.back().residues.size()))
    launches.push_back(wgather::choose(product, residues.first(std::min(kMostGathered, residues.size()))));
  return launches;
}

bool wgmma_gather_takes(const GatherProduct& product, const ProductAxes& axes) {
  return wgather::is_walkable(product, axes, false);
}

}  // namespace retrograd::kernels::cuda
