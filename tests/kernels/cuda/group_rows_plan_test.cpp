// SPDX-License-Identifier: Apache-2.0
// Boxes of group_rows: every place of the result is made once, of every tap that meets the source and of
// nothing else; weights lie as fragments want them; cuts fit into shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/group_boxes/group_rows_item.h"

namespace retrograd::kernels::cuda::group_rows_plan_test {
namespace {

constexpr unsigned kDraws = 150;

struct Problem {
  Conv conv{};
  bool forward = false;
  std::vector<ProductAxes> residues;
  std::string text;
};

// Taps that meet places r, r + stride, … of x, by looking at each.
ProductAxis residue_axis(const Axis& a, int64_t r) {
  ProductAxis axis{(a.x - r + a.stride - 1) / a.stride, a.stride, r, a.y, 1, 0, 0, 0, 0, 1, a.kernel};
  int64_t before = 0;
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t scaled = r + a.pad - t * a.dilation;
    if (scaled % a.stride != 0) continue;
    if (axis.taps == 0) axis.first = scaled / a.stride, axis.tap_first = t;
    if (axis.taps == 1) axis.tap_step = scaled / a.stride - axis.first, axis.tap_stride = t - before;
    before = t;
    ++axis.taps;
  }
  return axis;
}

Problem problem_of(const Conv& conv, bool forward) {
  Problem problem{conv, forward, {}, {}};
  const Axis(&a)[3] = conv.axes;
  const auto forward_axis = [](const Axis& axis) {
    return ProductAxis{axis.y,        1, 0, axis.x,     axis.stride, -axis.pad, axis.kernel,
                       axis.dilation, 0, 1, axis.kernel};
  };
  if (forward) {
    problem.residues = {{forward_axis(a[0]), forward_axis(a[1]), forward_axis(a[2])}};
    return problem;
  }
  for (int64_t d = 0; d < std::min(a[0].stride, a[0].x); ++d)
    for (int64_t h = 0; h < std::min(a[1].stride, a[1].x); ++h)
      for (int64_t w = 0; w < std::min(a[2].stride, a[2].x); ++w)
        problem.residues.push_back({residue_axis(a[0], d), residue_axis(a[1], h), residue_axis(a[2], w)});
  return problem;
}

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Conv c{};
  const int64_t channels[] = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40};
  c.batch = of(1, 20);
  c.x_channels = channels[of(0, 11)], c.y_channels = of(0, 2) == 0 ? channels[of(0, 11)] : c.x_channels;
  c.groups = of(1, 6) * 8;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  std::string text = "seed " + std::to_string(seed) + " n=" + std::to_string(c.batch) +
                     " c=" + std::to_string(c.x_channels) + " o=" + std::to_string(c.y_channels);
  const bool is_deep = of(0, 3) == 0;
  for (int i = is_deep ? 0 : 1; i < 3; ++i) {
    Axis& a = c.axes[i];
    do {
      a.x = of(0, 3) == 0 && !is_deep ? of(20, 90) : of(1, 12);
      a.kernel = of(1, is_deep ? 3 : 5);
      a.stride = of(1, 4);
      a.dilation = of(0, 2) == 0 ? of(2, 4) : 1;
      a.pad = of(-2, 5);
      const int64_t room = a.x + a.pad + of(-2, 5) - a.dilation * (a.kernel - 1) - 1;
      a.y = room < 0 ? 0 : room / a.stride + 1;
    } while (a.y < 1);
    text += " x=" + std::to_string(a.x) + " y=" + std::to_string(a.y) + " k=" + std::to_string(a.kernel) +
            " s=" + std::to_string(a.stride) + " d=" + std::to_string(a.dilation) +
            " p=" + std::to_string(a.pad);
  }
  Problem problem = problem_of(c, of(0, 1) == 0);
  problem.text = text + (problem.forward ? " forward" : " grad_input");
  return problem;
}

GroupRows plan_of(const Problem& problem) {
  return group_rows_plan(problem.conv, problem.forward, problem.residues);
}

// A number for each place of the source, 0 beyond the edge.
int name_of(const GroupProduct& p, int n, const int (&at)[3]) {
  int name = n;
  for (int a = 0; a < 3; ++a) {
    if (at[a] < 0 || at[a] >= p.axes[a].source) return 0;
    name = name * p.axes[a].source + at[a];
  }
  return name + 1;
}

// What the result at `at` is made of: names of places, by tap.
using Terms = std::map<int, int>;
Terms terms_of(const Problem& problem, const GroupProduct& p, int n, const int (&at)[3]) {
  Terms terms;
  const Axis(&a)[3] = problem.conv.axes;
  for (int d = 0; d < a[0].kernel; ++d)
    for (int h = 0; h < a[1].kernel; ++h)
      for (int w = 0; w < a[2].kernel; ++w) {
        const int tap[3] = {d, h, w};
        int from[3];
        bool meets = true;
        for (int i = 0; i < 3; ++i) {
          const int64_t shift = tap[i] * a[i].dilation - a[i].pad;
          const int64_t scaled = problem.forward ? at[i] * a[i].stride + shift : at[i] - shift;
          meets = meets && (problem.forward || scaled % a[i].stride == 0);
          from[i] = static_cast<int>(problem.forward ? scaled : scaled / a[i].stride);
          if (!problem.forward && scaled < 0) from[i] = -1;
        }
        if (const int name = meets ? name_of(p, n, from) : 0; name != 0)
          terms[(d * 100 + h) * 100 + w] = name;
      }
  return terms;
}

TEST(GroupRowsPlanTest, EveryPlaceOnceAndEveryTermOfIt) {
  int taken = 0;
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const GroupRows plan = plan_of(problem);
    if (!plan.fits) continue;
    ++taken;
    const GroupProduct& p = plan.product;
    ASSERT_LE(p.shared_bytes, 96 << 10);
    ASSERT_GT(plan.microseconds, 0);
    std::map<std::vector<int>, int> written;
    for (uint32_t number = 0; number < p.boxes; ++number) {
      const GroupBoxAt box = group_box_at(p, number);
      std::vector<int> staged(static_cast<size_t>(p.staged));
      for (int i = 0; i < p.staged; ++i) {
        const GroupPlace place = group_staged(p, i);
        int at[3], behind = place.n;
        for (int a = 0; a < 3; ++a) {
          at[a] = box.at[a] * p.axes[a].step + p.axes[a].low + place.at[a];
          behind = behind * p.axes[a].source + place.at[a];
        }
        ASSERT_EQ(place.offset, behind * p.all_groups * p.terms);
        const int n = box.n + place.n, name = n < p.batch ? name_of(p, n, at) : 0;
        staged[static_cast<size_t>(i)] = name;
        if (name != 0) {
          ASSERT_EQ(group_source_offset(p, box) + place.offset, int64_t{name - 1} * p.all_groups * p.terms);
        }
      }
      for (int number_of_residue = 0; number_of_residue < p.residues; ++number_of_residue) {
        int residue[3];
        group_residue(p, number_of_residue, residue);
        const int taps = group_taps(p, residue);
        for (int m = 0; m < p.positions; ++m) {
          const GroupPlace position = group_position(p, m);
          const int window = group_window(p, position), n = box.n + position.n;
          int at[3];
          bool there = n < p.batch;
          int64_t offset = n;
          for (int a = 0; a < 3; ++a) {
            there = there && box.at[a] + position.at[a] < p.axes[a].residue[residue[a]].results;
            at[a] = (box.at[a] + position.at[a]) * p.axes[a].result_step + residue[a];
            offset = offset * p.axes[a].result + at[a];
          }
          Terms terms;
          for (int i = 0; i < taps; ++i) {
            const GroupTap tap = group_tap(p, residue, i);
            const int name = staged.at(static_cast<size_t>(window + tap.staged));  // there or not
            if (name != 0) terms[(tap.at[0] * 100 + tap.at[1]) * 100 + tap.at[2]] = name;
          }
          if (!there) continue;
          ++written[{n, at[0], at[1], at[2]}];
          ASSERT_EQ(group_result_offset(p, box, residue) + position.offset,
                    offset * p.all_groups * p.columns);
          ASSERT_EQ(terms, terms_of(problem, p, n, at));
        }
      }
    }
    ASSERT_EQ(static_cast<int64_t>(written.size()),
              int64_t{p.batch} * p.axes[0].result * p.axes[1].result * p.axes[2].result);
    for (const auto& [place, count] : written) ASSERT_EQ(count, 1);
  }
  EXPECT_GT(taken, static_cast<int>(kDraws) / 2);
}

TEST(GroupRowsPlanTest, EveryWeightIsInOneWord) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const GroupRows plan = plan_of(problem);
    if (!plan.fits) continue;
    const GroupProduct& p = plan.product;
    ASSERT_GE(p.groups * plan.slabs, p.all_groups);
    ASSERT_LT(p.groups * (plan.slabs - 1), p.all_groups);
    ASSERT_EQ(int64_t{p.all_groups} * p.joined, problem.conv.groups);
    std::map<std::vector<int>, int> met;
    for (int quad = 0; quad < p.quads; ++quad)
      for (int k = 0; k < p.terms; ++k)
        for (int lane = 0; lane < 32; ++lane)
          for (int tile = 0; tile < kGroupQuad; ++tile) {
            const GroupWeight w = group_weight(p, quad, k, lane, tile);
            for (int i = 0; i < 2; ++i) {
              if (!w.live[i]) continue;
              ++met[{w.group, w.column, w.term[i]}];
              // Channels of the block: the word's column and terms as mma.sync has them.
              const int eight = quad * kGroupQuad + tile;
              ASSERT_EQ(eight * 8 + lane / 4, w.group * p.result_channels + w.column);
              ASSERT_EQ(eight / p.columns * p.terms * 8 + k * 8 + lane % 4 * 2 + i,
                        w.group * p.source_channels + w.term[i]);
            }
          }
    ASSERT_EQ(static_cast<int>(met.size()), p.groups * p.joined * p.source_channels * p.result_channels);
    for (const auto& [weight, count] : met) ASSERT_EQ(count, 1);
  }
}

Conv conv_of(int64_t groups, int64_t x_channels, int64_t y_channels, int64_t kernel) {
  Conv conv{};
  conv.batch = 1;
  conv.groups = groups;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  for (auto& axis : conv.axes) axis = {9, 9, 1, 1, 1, 0};
  for (const int a : {1, 2}) conv.axes[a] = {9 + kernel - 1, 9, kernel, 1, 1, 0};
  return conv;
}

TEST(GroupRowsPlanTest, DeclinesWhatIsNotWholeChunksOrTooLarge) {
  const auto fits = [](const Conv& conv) { return plan_of(problem_of(conv, false)).fits; };
  EXPECT_TRUE(fits(conv_of(1, 8, 8, 1)));
  EXPECT_TRUE(fits(conv_of(4, 12, 8, 1)));
  EXPECT_TRUE(fits(conv_of(4, 8, 4, 1)));
  EXPECT_TRUE(fits(conv_of(16, 4, 4, 7)));
  EXPECT_TRUE(fits(conv_of(16, 32, 32, 3)));
  EXPECT_FALSE(fits(conv_of(3, 4, 4, 3)));
  EXPECT_FALSE(fits(conv_of(4, 9, 8, 1)));
  EXPECT_FALSE(fits(conv_of(4, 256, 8, 1)));
  EXPECT_FALSE(fits(conv_of(16, 8, 8, 23)));
  EXPECT_FALSE(fits(conv_of(16, 64, 64, 7)));
}

TEST(GroupRowsPlanTest, BoxesWasteLittle) {
  Conv c = conv_of(32, 8, 8, 3);
  c.batch = 11;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = c.axes[2] = {161, 81, 3, 2, 1, 1};
  const GroupRows plan = plan_of(problem_of(c, false));
  ASSERT_TRUE(plan.fits);
  const GroupProduct& p = plan.product;
  EXPECT_EQ(p.residues, 4);
  EXPECT_EQ(p.taps, 9);
  EXPECT_GE(p.tiles, 4);                                              // 64 bytes of a place
  EXPECT_LE(int64_t{p.boxes} * p.positions, 11 * 81 * 81 * 12 / 10);  // computed
  EXPECT_LE(int64_t{p.boxes} * p.staged, 11 * 81 * 81 * 18 / 10);     // read
  EXPECT_LT(plan.microseconds, 150);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::group_rows_plan_test
