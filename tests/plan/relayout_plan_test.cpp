// SPDX-License-Identifier: Apache-2.0
// Copies from one layout to another: axes joined, reordered and widened still name every element once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>

#include "kernels/cuda/layout/relayout.h"

namespace retrograd::kernels::cuda {
namespace {

using Sizes = std::array<int64_t, 5>;
using Moves = std::map<int64_t, int64_t>;  // where to: where from

// Every index of `sizes`, each element of a vector of `wide` elements.
Moves moves_of(const int64_t (&sizes)[5], const int64_t (&from)[5], const int64_t (&to)[5], int axes,
               int wide) {
  Moves moves;
  Sizes at{};
  while (true) {
    int64_t source = 0, target = 0;
    for (int i = 0; i < axes; ++i)
      source += at[static_cast<size_t>(i)] * from[i], target += at[static_cast<size_t>(i)] * to[i];
    for (int v = 0; v < wide; ++v) {
      const bool fresh = moves.emplace(target * wide + v, source * wide + v).second;
      EXPECT_TRUE(fresh);
    }
    int axis = axes - 1;
    while (axis >= 0 && ++at[static_cast<size_t>(axis)] == sizes[axis]) at[static_cast<size_t>(axis--)] = 0;
    if (axis < 0) return moves;
  }
}

void dense(const int64_t (&sizes)[5], const Sizes& order, int64_t pitch, int64_t (&strides)[5]) {
  int64_t stride = 1;
  for (int64_t axis : order) {
    strides[axis] = stride;
    stride = (stride * sizes[axis] + pitch - 1) / pitch * pitch;
  }
}

TEST(RelayoutPlanTest, NamesEveryElementOnce) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int tiles = 0, wide_ones = 0;
  for (int round = 0; round < 500; ++round) {
    int64_t sizes[5], from[5], to[5];
    for (int64_t& size : sizes) size = draw(0, 2) == 0 ? 1 : draw(1, 2) * draw(1, 4);
    for (auto* strides : {&from, &to}) {
      Sizes order{4, 3, 2, 1, 0};
      if (draw(0, 1) == 0) std::shuffle(order.begin(), order.end(), random);
      dense(sizes, order, draw(1, 4), *strides);
    }
    if (draw(0, 3) == 0) from[draw(0, 4)] = 0;
    if (draw(0, 3) == 0) from[draw(0, 4)] *= -1;
    RelayoutPlan plan = relayout_plan(sizes, from, to);
    const Moves expected = moves_of(sizes, from, to, 5, 1);
    EXPECT_EQ(moves_of(plan.sizes, plan.from, plan.to, plan.axes, 1), expected);
    tiles += plan.across != plan.axes - 1;
    const int wide = widen(plan, 2, 16);
    wide_ones += wide > 1;
    EXPECT_EQ(moves_of(plan.sizes, plan.from, plan.to, plan.axes, wide), expected);
  }
  EXPECT_GT(tiles, 50);
  EXPECT_GT(wide_ones, 20);
}

TEST(RelayoutPlanTest, JoinsWhatLiesSideBySide) {
  // A slice of channels into planes: images stay apart, the rest is one axis.
  const RelayoutPlan slice = relayout_plan({4, 8, 1, 6, 6}, {576, 36, 36, 6, 1}, {288, 36, 36, 6, 1});
  EXPECT_EQ(slice.axes, 2);
  EXPECT_EQ(slice.sizes[1], 8 * 36);
  EXPECT_EQ(slice.across, 1);
  // Planes to channels last: the plane is one axis, across the channels.
  const RelayoutPlan last = relayout_plan({4, 8, 1, 6, 6}, {288, 36, 36, 6, 1}, {288, 1, 288, 48, 8});
  EXPECT_EQ(last.axes, 3);
  EXPECT_EQ(last.sizes[last.across], 36);
  // One image for all: read along the target's rows.
  EXPECT_EQ(relayout_plan({4, 8, 1, 6, 6}, {0, 36, 36, 6, 1}, {288, 36, 36, 6, 1}).across, 1);
}

TEST(RelayoutPlanTest, WidensAsFarAsAddressesAndStridesAllow) {
  RelayoutPlan plan = relayout_plan({2, 4, 1, 8, 8}, {512, 64, 64, 8, 1}, {256, 64, 64, 8, 1});
  RelayoutPlan odd = relayout_plan({2, 4, 1, 8, 8}, {300, 72, 72, 9, 1}, {256, 64, 64, 8, 1});
  RelayoutPlan addresses = plan;
  EXPECT_EQ(widen(plan, 2, 16), 8);
  EXPECT_EQ(widen(odd, 2, 16), 1);
  EXPECT_EQ(widen(addresses, 2, 4), 2);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
