// SPDX-License-Identifier: Apache-2.0
// Which cut, and how many parts: the least of what steps, stores and parts take by counting. An H200 stands
// for every GPU, so that the order of sums is the problem's alone.
#include <algorithm>
#include <array>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense/tap_places.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kProcessors = 132;
constexpr int64_t kM = 128, kWidth = 64;
constexpr int64_t kMostBlocks = int64_t{1} << 30;
constexpr int64_t kMostParts = 64, kFewestSteps = 8;  // of a part
// Of a multiprocessor, in a microsecond: bytes from L2, products of 16 bits. Bytes of all to memory.
constexpr double kLoaded = 50e3, kMultiplied = 3.3e6, kStored = 2.6e6;

struct CutShape {
  TapCut cut;
  int64_t n, blocks;  // blocks: of a multiprocessor
  double ends;        // microseconds of a block's beginning and end
};
constexpr std::array<CutShape, 2> kCuts = {
    {{TapCut::k128x128, 128, 2, 2.5}, {TapCut::k128x256, 256, 1, 3.5}}};

int filled(int64_t channels) { return ceil_of(channels, 8) * 8; }

// Those of w that lead anywhere; others are 0.
std::array<int64_t, 4> strides_of(const Conv& conv) {
  const int64_t* s = conv.w.strides;
  const Axis(&a)[3] = conv.axes;
  return {conv.y_channels > 1 ? s[0] : 0, a[0].kernel > 1 ? s[2] : 0, a[1].kernel > 1 ? s[3] : 0,
          a[2].kernel > 1 ? s[4] : 0};
}
// Whether eight channels can be stored at once, an aligned address given.
bool is_direct(const Conv& conv, DType rows) {
  const auto strides = strides_of(conv);
  return conv.w.dtype == rows && conv.w.strides[1] == 1 && conv.x_channels % 8 == 0 &&
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride % 8 == 0; });
}

TapWalk make_walk(const Conv& conv, const CutShape& cut) {
  TapWalk w{};
  for (int i = 0; i < 3; ++i) {
    const Axis& a = conv.axes[i];
    w.axes[i] = {static_cast<int>(a.x),      static_cast<int>(a.y),        static_cast<int>(a.kernel),
                 static_cast<int>(a.stride), static_cast<int>(a.dilation), static_cast<int>(a.pad)};
  }
  w.batch = static_cast<int>(conv.batch);
  w.taps = w.axes[0].kernel * w.axes[1].kernel * w.axes[2].kernel;
  w.rows = static_cast<int>(conv.y_channels);
  w.columns = static_cast<int>(conv.x_channels);
  w.y_channels = filled(conv.y_channels);
  w.x_channels = filled(conv.x_channels);
  w.across_m = ceil_of(w.rows, kM);
  w.across_n = ceil_of(w.columns, cut.n);
  w.weights = conv.y_channels * w.taps * w.x_channels;
  return w;
}

double mean_steps(const TapWalk& walk) {
  double places = walk.batch;
  for (const TapAxis& a : walk.axes) {
    double live = 0;
    for (int tap = 0; tap < a.kernel; ++tap) live += live_outputs(a, tap).count;
    places *= live / a.kernel;
  }
  return places / kTapTerms;
}

// Blocks in turns; those that share a multiprocessor share what it loads and multiplies.
double estimate(const TapWalk& walk, const CutShape& cut, double steps, bool direct) {
  const auto mean = [](int64_t all, int64_t count) {
    return static_cast<double>(all) / static_cast<double>(count);
  };
  const double rows = mean(walk.y_channels, walk.across_m), columns = mean(walk.x_channels, walk.across_n);
  const double width = mean(ceil_of(walk.x_channels, kWidth) * kWidth, walk.across_n);
  const double step =
      std::max((rows + columns) * 2 * kTapTerms / kLoaded, kM * width * kTapTerms / kMultiplied);
  const double all = std::max(steps / walk.parts, 1.0) * step;
  const int64_t blocks = int64_t{walk.parts} * walk.across_n * walk.taps * walk.across_m;
  const int64_t turn = kProcessors * cut.blocks, left = blocks % turn;
  const auto together = static_cast<double>(cut.blocks);
  const double time = static_cast<double>(blocks / turn) * (cut.ends + all * together) +
                      (left == 0 ? 0 : cut.ends + all * static_cast<double>(ceil_of(left, kProcessors)));
  const auto weights = static_cast<double>(walk.weights);
  const double stored = weights * (direct ? 2 : 4.0 * walk.parts) / kStored;
  // Parts are read once, most of them from L2, and added by a second kernel.
  const double added = direct ? 0 : weights * 1e-6 * (0.76 * walk.parts + 0.6) + 2;
  return std::max(time, stored + cut.ends) + added;
}

}  // namespace

const char* name_of(TapCut cut) { return cut == TapCut::k128x128 ? "128 x 128" : "128 x 256"; }

bool plan_tap_weight(const Conv& conv, DType rows, TapPlan* plan) {
  const bool may_be_direct = is_direct(conv, rows);
  bool found = false;
  for (const CutShape& cut : kCuts) {
    TapWalk walk = make_walk(conv, cut);
    const double steps = mean_steps(walk);
    const int64_t tiles = int64_t{walk.across_n} * walk.taps * walk.across_m;
    if (tiles > kMostBlocks) continue;
    const auto most = static_cast<int>(
        std::clamp(std::min(static_cast<int64_t>(steps) / kFewestSteps, 3 * kProcessors * cut.blocks / tiles),
                   int64_t{1}, kMostParts));
    for (int parts = 1; parts <= most; ++parts) {
      walk.parts = parts;
      const bool direct = may_be_direct && parts == 1;
      const double time = estimate(walk, cut, steps, direct);
      if (found && time >= plan->microseconds) continue;
      found = true;
      *plan = {cut.cut, walk, direct, {}, time};
    }
  }
  const auto strides = strides_of(conv);
  std::copy(strides.begin(), strides.end(), plan->strides);
  return found;
}

}  // namespace retrograd::kernels::cuda
