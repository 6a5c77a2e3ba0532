// SPDX-License-Identifier: Apache-2.0
// Cuts of group_weights: every weight has one place in one warp's sums, every box one part, and all fits into
// shared memory. What a box holds is tested with group_rows.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/group_boxes/group_rows_item.h"
#include "kernels/cuda/group_boxes/group_weights.h"

namespace retrograd::kernels::cuda::group_weights_plan_test {
namespace {

constexpr unsigned kDraws = 200;

struct Problem {
  Conv conv{};
  ProductAxes axes{};
  std::string text;
};

void set_axis(Problem& problem, int number, const Axis& axis) {
  problem.conv.axes[number] = axis;
  problem.axes[static_cast<size_t>(number)] = {
      axis.y, 1, 0, axis.x, axis.stride, -axis.pad, axis.kernel, axis.dilation, 0, 1, axis.kernel};
}

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Problem problem;
  Conv& c = problem.conv;
  const int64_t channels[] = {1, 2, 3, 4, 6, 8, 8, 12, 16, 24, 32, 40};
  c.batch = of(1, 40);
  c.x_channels = channels[of(0, 11)], c.y_channels = of(0, 2) == 0 ? channels[of(0, 11)] : c.x_channels;
  c.groups = of(0, 1) == 0 ? of(1, 40) : of(1, 6) * 8;
  problem.text = "seed " + std::to_string(seed) + " n=" + std::to_string(c.batch) +
                 " g=" + std::to_string(c.groups) + " c=" + std::to_string(c.x_channels) +
                 " o=" + std::to_string(c.y_channels);
  const bool is_deep = of(0, 3) == 0;
  set_axis(problem, 0, {1, 1, 1, 1, 1, 0});
  for (int i = is_deep ? 0 : 1; i < 3; ++i) {
    Axis a{};
    a.kernel = of(1, is_deep ? 4 : 7), a.stride = of(1, 3), a.dilation = of(1, 2), a.pad = of(-1, 3);
    a.y = of(1, is_deep ? 16 : 90);
    a.x = std::max<int64_t>(1, (a.y - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.pad - of(0, 2));
    set_axis(problem, i, a);
    problem.text +=
        " y=" + std::to_string(a.y) + " k=" + std::to_string(a.kernel) + " s=" + std::to_string(a.stride);
  }
  return problem;
}

TEST(GroupWeightsPlanTest, EveryWeightIsInOneWarp) {
  int taken = 0;
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const Conv& conv = problem.conv;
    const GroupWeights plan = group_weights_plan(conv, problem.axes);
    if (!plan.fits) continue;
    ++taken;
    const GroupWeightsCut& c = plan.cut;
    const GroupProduct& p = c.product;
    ASSERT_LE(p.shared_bytes, 96 << 10);
    ASSERT_LE(2 * (p.stage_bytes + c.y_bytes) + (p.staged + p.positions) * 16, p.shared_bytes);
    ASSERT_GE(c.of_warp * c.owners, p.taps);
    ASSERT_LT(c.of_warp * (c.owners - 1), p.taps);
    ASSERT_LE(c.of_warp, 9);
    ASSERT_EQ(c.of_warp % 2, 1);
    ASSERT_GE(c.slices * kGroupWarps, c.units * c.owners);
    ASSERT_LE(c.shares * std::min(c.units * c.owners, kGroupWarps), kGroupWarps);
    ASSERT_GE(c.filled, p.positions);
    ASSERT_GE(int64_t{c.parts} * c.in_part, int64_t{p.boxes});
    ASSERT_LT(int64_t{c.parts - 1} * c.in_part, int64_t{p.boxes});
    ASSERT_EQ(c.weights, conv.groups * conv.y_channels * conv.x_channels * p.taps);
    const int slabs = (p.all_groups + p.groups - 1) / p.groups;
    std::map<std::vector<int64_t>, int> met;
    for (int slab = 0; slab < slabs; ++slab) {
      const int first = slab * p.groups, groups = std::min(p.groups, p.all_groups - first);
      for (int number = 0; number < c.units; ++number) {
        const GroupUnit unit = group_unit(c, number);
        for (int o = 0; o < 16; ++o)
          for (int i = 0; i < 16; ++i) {
            const GroupPair pair = group_pair(c, unit, groups, o, i);
            if (!pair.live) continue;
            // Inside what a place has in shared memory.
            ASSERT_LT(pair.y, groups * p.columns * 8);
            ASSERT_LT(pair.x, groups * p.terms * 8);
            const int64_t y = int64_t{first} * p.columns * 8 + pair.y,
                          x = int64_t{first} * p.terms * 8 + pair.x;
            ASSERT_EQ(y / conv.y_channels, x / conv.x_channels);
            ++met[{y, x % conv.x_channels}];
          }
      }
    }
    ASSERT_EQ(static_cast<int64_t>(met.size()), conv.groups * conv.y_channels * conv.x_channels);
    for (const auto& [weight, count] : met) ASSERT_EQ(count, 1);
  }
  EXPECT_GT(taken, static_cast<int>(kDraws) / 3);
}

TEST(GroupWeightsPlanTest, PartsAreRunsOfRows) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const GroupWeights plan = group_weights_plan(problem.conv, problem.axes);
    if (!plan.fits) continue;
    const GroupWeightsCut& c = plan.cut;
    const GroupProduct& p = c.product;
    const int64_t height = problem.conv.axes[0].y * problem.conv.axes[1].y;
    ASSERT_EQ(plan.rows.height, height);
    for (int part = 0; part < c.parts; ++part) {
      const GroupBoxAt box = group_box_at(p, static_cast<uint32_t>(part) * static_cast<uint32_t>(c.in_part));
      ASSERT_EQ(box.at[2], 0);
      ASSERT_EQ(plan.rows.first_row(part), box.n * height + box.at[0] * problem.conv.axes[1].y + box.at[1]);
    }
  }
}

TEST(GroupWeightsPlanTest, ReadsLittleTwice) {
  Problem problem;
  Conv& c = problem.conv;
  c.batch = 6, c.groups = 21, c.x_channels = c.y_channels = 8;
  set_axis(problem, 0, {1, 1, 1, 1, 1, 0});
  set_axis(problem, 1, {346, 346, 3, 1, 1, 1});
  set_axis(problem, 2, {88, 88, 1, 1, 2, 0});
  const GroupWeights plan = group_weights_plan(c, problem.axes);
  ASSERT_TRUE(plan.fits);
  const GroupProduct& p = plan.cut.product;
  EXPECT_TRUE(plan.cut.paired);
  EXPECT_EQ(plan.cut.of_warp, 3);
  EXPECT_LE(int64_t{p.boxes} * p.staged, 6 * 346 * 88 * 14 / 10);
  EXPECT_GE(p.tiles, 4);
  EXPECT_LT(plan.microseconds, 100);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::group_weights_plan_test
