// SPDX-License-Identifier: Apache-2.0
// Which cut, and how many shares: the least of what steps, stores and sums of shares take by counting. An
// H200 stands for every GPU, so that the order of sums is the problem's alone.
#include <algorithm>
#include <array>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense_weight/tap_places.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kProcessors = 132, kNeighbours = 8,
                  kOfNeighbours = 16;  // clusters lie in one of eight sixteens
constexpr int64_t kWidth = 64;
constexpr int64_t kMostBlocks = int64_t{1} << 30;
constexpr int64_t kMostShares = 64, kFewestSteps = 4;  // of a share
constexpr int64_t kLargestCluster = 8;
// Of a multiprocessor, in a microsecond: bytes from L2 and from its neighbours, products of 16 bits. Bytes of
// all to memory, and of a second kernel.
constexpr double kLoaded = 26e3, kFetched = 60e3, kMultiplied = 1.25e6, kStored = 5e6, kCopied = 2.6e6;
constexpr double kLaunch = 4.4;  // microseconds of a second kernel
constexpr double kStep = 1.2;    // of a step, however little there is to load

struct CutShape {
  TapCut cut;
  const char* name;
  int64_t m, n, blocks;  // blocks: of a multiprocessor
  double ends;           // microseconds of a block's beginning and end
};
constexpr std::array<CutShape, 3> kCuts = {{{TapCut::k128x128, "128 x 128", 128, 128, 2, 1},
                                            {TapCut::k128x256, "128 x 256", 128, 256, 1, 1.6},
                                            {TapCut::k192x256, "192 x 256", 192, 256, 1, 2}}};

int filled(int64_t channels) { return ceil_of(channels, 8) * 8; }

TapWalk make_walk(const Conv& conv, const CutShape& cut) {
  TapWalk w{};
  for (int i = 0; i < 3; ++i) w.axes[i] = TapAxis(conv.axes[i]);
  w.batch = static_cast<int>(conv.batch);
  w.taps = FastDiv(int64_t{w.axes[0].kernel} * w.axes[1].kernel * w.axes[2].kernel);
  w.rows = static_cast<int>(conv.y_channels);
  w.y_channels = filled(conv.y_channels);
  w.x_channels = filled(conv.x_channels);
  w.groups = static_cast<int>(conv.groups);
  w.across_m = FastDiv(ceil_of(w.rows, cut.m));
  w.across_n = FastDiv(ceil_of(w.x_channels, cut.n));
  w.weights = conv.groups * conv.y_channels * w.taps.divisor * w.x_channels;
  return w;
}

// Of a tap: between the mean and the most, which blocks at the end wait for.
double steps_of(const Conv& conv) {
  constexpr double kOfMost = 0.7;
  auto mean = static_cast<double>(conv.batch), most = mean;
  for (const Axis& axis : conv.axes) {
    const TapAxis a(axis);
    double live = 0, longest = 0;
    for (int tap = 0; tap < a.kernel; ++tap) {
      const double count = live_outputs(a, tap).count;
      live += count;
      longest = std::max(longest, count);
    }
    mean *= live / a.kernel;
    most *= longest;
  }
  return (mean + kOfMost * (most - mean)) / kTapTerms;
}

// Of blocks in turns; those that share a multiprocessor share what it loads and multiplies.
double time_of_blocks(const TapWalk& walk, const CutShape& cut, double steps) {
  const auto mean = [](int64_t all, int64_t count) {
    return static_cast<double>(all) / static_cast<double>(count);
  };
  const auto together = static_cast<double>(cut.blocks);
  const double rows = mean(walk.y_channels, walk.across_m.divisor),
               columns = mean(walk.x_channels, walk.across_n.divisor);
  const double height = mean(ceil_of(walk.rows, kWidth) * kWidth, walk.across_m.divisor);
  const double width = mean(ceil_of(walk.x_channels, kWidth) * kWidth, walk.across_n.divisor);
  const double step = std::max({(rows + columns) * 2 * kTapTerms / kLoaded,
                                height * width * kTapTerms / kMultiplied, kStep / together});
  const double summed = walk.cluster.divisor == 1 ? 0 : 1 + height * width * 4 / kFetched;
  const double all = std::max(steps / static_cast<double>(walk.shares()), 1.0) * step + summed;
  const int64_t cluster = walk.cluster.divisor;
  // Odd clusters leave one of a pair of multiprocessors idle.
  const int64_t turn = cluster == 1       ? kProcessors * cut.blocks
                       : cluster % 2 == 1 ? kProcessors * cut.blocks / (cluster + 1) * cluster
                                          : kNeighbours * (kOfNeighbours * cut.blocks / cluster * cluster);
  const int64_t blocks = walk.shares() * walk.tiles(), turns = blocks / turn, left = blocks % turn;
  return static_cast<double>(turns) * (cut.ends + all * together) +
         (left == 0 ? 0 : cut.ends + all * static_cast<double>(ceil_of(left * cut.blocks, turn)));
}

double estimate(const TapWalk& walk, const CutShape& cut, double steps, WeightResults results) {
  const double time = time_of_blocks(walk, cut, steps);
  const auto weights = static_cast<double>(walk.weights);
  const auto with_stores = [&](double bytes) { return std::max(time, bytes * weights / kStored + cut.ends); };
  switch (results) {
    case WeightResults::kInPlace:
      return with_stores(2);
    case WeightResults::kFilter:
      return with_stores(2) + weights * 4 / kCopied + kLaunch;
    case WeightResults::kParts:
      break;
  }
  const double parts = walk.parts.divisor;
  // Parts are read once, most of them from L2.
  return with_stores(4 * parts) + weights * 1e-6 * (0.76 * parts + 0.6) + kLaunch;
}

}  // namespace

const char* name_of(TapCut cut) { return kCuts[static_cast<size_t>(cut)].name; }

bool plan_tap_weight(const Conv& conv, DType rows, TapPlan* plan) {
  bool found = false;
  const double steps = steps_of(conv);
  for (const CutShape& cut : kCuts) {
    TapWalk walk = make_walk(conv, cut);
    const WeightResults of_sums = whole_results(conv, rows);
    const int64_t tiles = walk.tiles();
    if (tiles > kMostBlocks) continue;
    const int64_t most =
        std::clamp(std::min(static_cast<int64_t>(steps) / kFewestSteps, 3 * kProcessors * cut.blocks / tiles),
                   int64_t{1}, kMostShares);
    for (int64_t cluster = 1; cluster <= std::min(most, kLargestCluster); ++cluster)
      for (int64_t parts = 1; parts * cluster <= most; ++parts) {
        walk.cluster = FastDiv(cluster);
        walk.parts = FastDiv(parts);
        const WeightResults results = parts > 1 ? WeightResults::kParts : of_sums;
        const double time = estimate(walk, cut, steps, results);
        if (found && time >= plan->microseconds) continue;
        found = true;
        *plan = {cut.cut, walk, results, {}, time};
      }
  }
  if (!found) return false;
  plan->strides = strides_of(conv, plan->results);
  return true;
}

}  // namespace retrograd::kernels::cuda
