// SPDX-License-Identifier: Apache-2.0
// Walks over a tap's places: every live pair of places in exactly one part, in order; and how tiles are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/dense_weight/tap_places.h"

namespace retrograd::kernels::cuda {
namespace {

using Pairs = std::vector<std::pair<int, int>>;  // places of y and of x

TapWalk walk_of(int batch, const std::array<Axis, 3>& axes) {
  TapWalk walk{};
  walk.batch = batch;
  for (size_t i = 0; i < 3; ++i) walk.axes[i] = TapAxis(axes[i]);
  walk.taps = FastDiv(axes[0].kernel * axes[1].kernel * axes[2].kernel);
  return walk;
}

// From the definition: position = o·stride − pad + t·dilation.
Pairs live_pairs(const TapWalk& walk, int tap) {
  const auto& [d, h, w] = walk.axes;
  const int taps[3] = {tap / (h.kernel * w.kernel), tap / w.kernel % h.kernel, tap % w.kernel};
  Pairs pairs;
  for (int i = 0; i < walk.batch * d.y * h.y * w.y; ++i) {
    const int outputs[3] = {i / (h.y * w.y) % d.y, i / w.y % h.y, i % w.y};
    int x = i / (d.y * h.y * w.y);
    bool live = true;
    for (int a = 0; a < 3; ++a) {
      const TapAxis& axis = walk.axes[a];
      const int position = outputs[a] * axis.stride - axis.pad + taps[a] * axis.dilation;
      live = live && position >= 0 && position < axis.x;
      x = x * axis.x + position;
    }
    if (live) pairs.emplace_back(i, x);
  }
  return pairs;
}

// As the kernel's lanes make them, a step after the other.
Pairs walked_pairs(const TapWalk& walk, int tap, int parts) {
  const TapPlaces places = places_of_tap(walk, tap);
  Pairs pairs;
  for (int part = 0; part < parts; ++part) {
    const TapPart of_part = part_of(places, part, static_cast<uint32_t>(parts));
    std::vector<TapPlaceWalk> lanes;
    for (int term = 0; term < kTapTerms; ++term) lanes.emplace_back(places, of_part, term);
    for (int step = 0; step < of_part.steps; ++step)
      for (TapPlaceWalk& lane : lanes) {
        if (lane.is_there()) pairs.emplace_back(lane.y(walk, places), lane.x(walk, places));
        lane.next(places);
      }
    for (const TapPlaceWalk& lane : lanes) EXPECT_FALSE(lane.is_there());
  }
  return pairs;
}

TEST(TapPlaces, HoldEveryLivePairOnceAndInOrder) {
  const Axis none{1, 1, 1, 1, 1, 0};
  const std::vector<TapWalk> walks = {
      walk_of(2, {none, {8, 1, 7, 2, 1, 0}, {8, 1, 7, 2, 1, 0}}),      // few places, many taps
      walk_of(3, {none, {67, 34, 3, 2, 1, 1}, {3, 2, 3, 2, 1, 1}}),    // stride 2, padding
      walk_of(1, {none, {5, 5, 3, 1, 2, 2}, {40, 40, 3, 1, 1, 1}}),    // dilation
      walk_of(2, {none, {4, 9, 1, 1, 1, 4}, {6, 9, 5, 3, 4, 20}}),     // more padding than x has
      walk_of(2, {none, {9, 2, 2, 3, 1, -2}, {70, 66, 3, 1, 1, -1}}),  // padding that cuts off
      walk_of(1, {Axis{5, 3, 3, 2, 1, 1}, {4, 4, 3, 1, 1, 1}, {33, 33, 1, 1, 1, 0}}),
      walk_of(5, {none, none, none})};
  for (const TapWalk& walk : walks)
    for (int tap = 0; tap < static_cast<int>(walk.taps.divisor); ++tap)
      for (const int parts : {1, 2, 3, 7}) EXPECT_EQ(walked_pairs(walk, tap, parts), live_pairs(walk, tap));
}

Conv conv_of(int64_t batch, int64_t x_channels, int64_t y_channels, const Axis& h, const Axis& w) {
  Conv conv{};
  conv.batch = batch;
  conv.groups = 1;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  conv.axes[0] = {1, 1, 1, 1, 1, 0};
  conv.axes[1] = h;
  conv.axes[2] = w;
  conv.w.dtype = DType::kF16;
  const int64_t strides[5] = {h.kernel * w.kernel * x_channels, 1, 7, w.kernel * x_channels, x_channels};
  std::copy(strides, strides + 5, conv.w.strides);
  return conv;
}

TEST(TapPlan, WritesManyResultsOfFewPlacesInPlace) {
  TapPlan plan{};
  ASSERT_TRUE(
      plan_tap_weight(conv_of(2, 752, 456, {8, 1, 7, 2, 1, 0}, {8, 1, 7, 2, 1, 0}), DType::kF16, &plan));
  EXPECT_EQ(plan.results, WeightResults::kInPlace);
  EXPECT_EQ(plan.walk.shares(), 1);
  EXPECT_EQ(plan.walk.across_m.divisor, 4);
  EXPECT_EQ(plan.walk.taps.divisor, 49);
  // The axis of one tap leads nowhere, whatever its stride.
  EXPECT_EQ(plan.strides[1], 0);
  EXPECT_EQ(plan.strides[3], 752);
}

TEST(TapPlan, GroupsHaveTilesOfTheirOwn) {
  const Axis axis{8, 8, 3, 1, 1, 1};
  Conv conv = conv_of(4, 64, 64, axis, axis);
  conv.groups = 6;
  TapPlan plan{};
  ASSERT_TRUE(plan_tap_weight(conv, DType::kF16, &plan));
  EXPECT_EQ(plan.walk.tiles(), 6 * 9);
  EXPECT_EQ(plan.walk.weights, int64_t{6} * 64 * 9 * 64);
}

TEST(TapPlan, CutsLongSumsOfFewResults) {
  TapPlan plan{};
  ASSERT_TRUE(plan_tap_weight(conv_of(1, 728, 728, {360, 360, 1, 1, 1, 0}, {40, 40, 1, 1, 1, 0}), DType::kF16,
                              &plan));
  EXPECT_GT(plan.walk.shares(), 1);
  EXPECT_LE(plan.walk.cluster.divisor, 8);
  EXPECT_EQ(plan.results, plan.walk.parts.divisor > 1 ? WeightResults::kParts : WeightResults::kInPlace);
  EXPECT_EQ(plan.walk.weights, int64_t{728} * 728);
}

TEST(TapPlan, TakesOtherLayoutsAndTypesThroughTheWorkspace) {
  const Axis axis{8, 8, 3, 1, 1, 1};
  Conv conv = conv_of(1, 64, 64, axis, axis);
  TapPlan plan{};
  ASSERT_TRUE(plan_tap_weight(conv, DType::kF16, &plan));
  EXPECT_EQ(plan.results, WeightResults::kInPlace);
  ASSERT_TRUE(plan_tap_weight(conv, DType::kBF16, &plan));
  EXPECT_EQ(plan.results, WeightResults::kParts);
  conv.w.strides[1] = 9;
  ASSERT_TRUE(plan_tap_weight(conv, DType::kF16, &plan));
  EXPECT_EQ(plan.results, WeightResults::kFilter);
  ASSERT_TRUE(plan_tap_weight(conv_of(1, 60, 64, axis, axis), DType::kF16, &plan));
  EXPECT_EQ(plan.results, WeightResults::kFilter);
  EXPECT_EQ(plan.walk.x_channels, 64);
  EXPECT_TRUE(std::equal(plan.strides.begin(), plan.strides.end(),
                         std::array<int64_t, 4>{576, 576, 192, 64}.begin()));
}

}  // namespace
}  // namespace retrograd::kernels::cuda
