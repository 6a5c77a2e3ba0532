// SPDX-License-Identifier: Apache-2.0
// Boxes of forward with few x channels: what a block stages, where the terms of a window lie in it, and the
// order of weights in fragments, against plain sums.
#include "kernels/cuda/stems/box_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace retrograd::kernels::cuda {
namespace {

constexpr unsigned kDraws = 120;

struct Problem {
  Conv conv{};
  std::string text;
};

void lay_out(Tensor& tensor, const int64_t (&sizes)[5], bool last) {
  const int planes[5] = {4, 3, 2, 1, 0}, channels_last[5] = {1, 4, 3, 2, 0};
  int64_t stride = 1;
  for (const int axis : last ? channels_last : planes) tensor.strides[axis] = stride, stride *= sizes[axis];
}

Problem draw(unsigned seed) {
  std::mt19937 engine(seed);
  const auto of = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Problem problem;
  Conv& c = problem.conv;
  c.batch = of(1, 3), c.groups = of(1, 2), c.x_channels = of(1, 9), c.y_channels = of(1, 70);
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  problem.text = "seed " + std::to_string(seed) + " c=" + std::to_string(c.x_channels) +
                 " o=" + std::to_string(c.y_channels);
  const bool is_deep = of(0, 2) == 0;
  for (int i = is_deep ? 0 : 1; i < 3; ++i) {
    Axis& a = c.axes[i];
    do {
      a.x = of(0, 4) == 0 && !is_deep ? of(40, 300) : of(1, 20);
      a.kernel = of(1, is_deep ? 4 : 7);
      a.stride = of(1, 4);
      a.dilation = of(0, 2) == 0 ? of(2, 4) : 1;
      a.pad = of(-2, 5);
      const int64_t room = a.x + a.pad + of(-2, 5) - a.dilation * (a.kernel - 1) - 1;
      a.y = room < 0 ? 0 : room / a.stride + 1;
    } while (a.y < 1);
    problem.text += " x=" + std::to_string(a.x) + " y=" + std::to_string(a.y) +
                    " k=" + std::to_string(a.kernel) + " s=" + std::to_string(a.stride) +
                    " d=" + std::to_string(a.dilation) + " p=" + std::to_string(a.pad);
  }
  c.x.dtype = c.y.dtype = c.w.dtype = of(0, 1) == 0 ? DType::kF32 : DType::kBF16;
  lay_out(c.x, {c.batch, c.groups * c.x_channels, c.axes[0].x, c.axes[1].x, c.axes[2].x}, of(0, 1) == 0);
  lay_out(c.y, {c.batch, c.groups * c.y_channels, c.axes[0].y, c.axes[1].y, c.axes[2].y}, of(0, 1) == 0);
  return problem;
}

// A number for each element of x, 0 for those beyond the edge.
int name_of(int n, int c, int d, int h, int w) { return 1 + n + 3 * (c + 16 * (d + 32 * (h + 512 * w))); }

TEST(BoxPlanTest, EveryPlaceOnceAndEveryTermOfIt) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const BoxPlan plan = box_plan(problem.conv);
    const BoxProduct& p = plan.product;
    ASSERT_TRUE(plan.fits);
    ASSERT_LE(p.places, kBoxPlaces);
    ASSERT_GE(plan.blocks * p.rounds, int64_t{p.boxes});
    std::vector<int> written(static_cast<size_t>(problem.conv.batch * p.d.y * p.h.y * p.w.y));
    const int volume = p.d.staged * p.h.staged * p.w.staged;
    ASSERT_LE(int64_t{volume} * p.channels * int64_t{problem.conv.x.dtype == DType::kF32 ? 4 : 2},
              p.box_bytes);
    for (uint32_t number = 0; number < p.boxes; ++number) {
      const BoxPlace at = box_place(p, number);
      std::vector<int> staged(static_cast<size_t>(volume * p.channels), -1);
      for (int i = 0; i < volume * p.channels; ++i) {
        const BoxElement e = box_element(p, at, i);
        ASSERT_EQ(staged.at(static_cast<size_t>(e.to)), -1);
        staged[static_cast<size_t>(e.to)] = e.inside ? name_of(at.n, e.c, e.d, e.h, e.w) : 0;
      }
      for (int place = 0; place < p.places; ++place) {
        const InBox in = in_box(p, place);
        const int window = window_of(p, in);
        const int d = at.d + in.d, h = at.h + in.h, w = at.w + in.w;
        const bool there = d < p.d.y && h < p.h.y && w < p.w.y;
        if (there) ++written.at(static_cast<size_t>(((at.n * p.d.y + d) * p.h.y + h) * p.w.y + w));
        for (int k = 0; k < p.terms; ++k) {
          const BoxTerm t = box_term(p, k);
          const int value = staged.at(static_cast<size_t>(window + t.staged));  // in bounds, there or not
          if (!there) continue;
          const int xd = d * p.d.stride - p.d.pad + t.d * p.d.dilation,
                    xh = h * p.h.stride - p.h.pad + t.h * p.h.dilation,
                    xw = w * p.w.stride - p.w.pad + t.w * p.w.dilation;
          const bool inside = xd >= 0 && xd < p.d.x && xh >= 0 && xh < p.h.x && xw >= 0 && xw < p.w.x;
          ASSERT_EQ(value, inside ? name_of(at.n, t.channel, xd, xh, xw) : 0);
          if (p.pairs && k % 2 == 0) {
            ASSERT_EQ((window + t.staged) % 2, 0);
            ASSERT_EQ(box_term(p, k + 1).staged, t.staged + 1);
          }
        }
      }
    }
    for (const int count : written) ASSERT_EQ(count, 1);
  }
}

TEST(BoxPlanTest, WeightsLieAsFragmentsWantThem) {
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const Problem problem = draw(seed);
    SCOPED_TRACE(problem.text);
    const BoxProduct p = box_plan(problem.conv).product;
    ASSERT_EQ(p.chunk % p.of_fragment, 0);
    ASSERT_GE(p.columns * p.column_tiles, p.outputs);
    const int across = p.columns / 8, of_lane = p.of_fragment / 4;
    std::vector<int> placed(static_cast<size_t>(p.chunk * p.columns), 0);
    for (int k = 0; k < p.chunk; ++k)
      for (int column = 0; column < p.columns; ++column)
        ++placed.at(static_cast<size_t>(weight_place(p, k, column)));
    for (const int count : placed) ASSERT_EQ(count, 1);
    // Lane 4g + t of fragment (f, j): column 8j + g, terms as mma.sync has them.
    for (int f = 0; f < p.chunk / p.of_fragment; ++f)
      for (int j = 0; j < across; ++j)
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < of_lane; ++i) {
            const int t = lane % 4;
            const int in = p.of_fragment == 8 ? t + 4 * i : 2 * t + i % 2 + i / 2 * 8;
            ASSERT_EQ(weight_place(p, f * p.of_fragment + in, j * 8 + lane / 4),
                      ((f * across + j) * 32 + lane) * of_lane + i);
          }
  }
}

TEST(BoxPlanTest, BoxesWasteLittle) {
  Conv c{};
  c.batch = 192, c.groups = 1, c.x_channels = 8, c.y_channels = 24;
  c.axes[0] = {1, 1, 1, 1, 1, 0};
  c.axes[1] = c.axes[2] = {69, 34, 3, 2, 1, 0};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF16;
  lay_out(c.x, {192, 8, 1, 69, 69}, true);
  lay_out(c.y, {192, 24, 1, 34, 34}, true);
  BoxProduct p = box_plan(c).product;
  EXPECT_TRUE(p.pairs);
  EXPECT_TRUE(p.x_channels_fast);
  EXPECT_LE(p.boxes / 192 * 128, 1156 * 1.3);
  EXPECT_EQ(p.columns, 32);
  EXPECT_GT(p.rounds, 1);

  c.batch = 9, c.x_channels = 1, c.y_channels = 32;
  c.axes[0] = c.axes[1] = c.axes[2] = {52, 26, 7, 2, 1, 3};
  c.x.dtype = c.y.dtype = c.w.dtype = DType::kF32;
  lay_out(c.x, {9, 1, 52, 52, 52}, false);
  lay_out(c.y, {9, 32, 26, 26, 26}, false);
  p = box_plan(c).product;
  EXPECT_EQ(p.terms, 343);
  EXPECT_EQ(p.filled, 344);
  EXPECT_EQ(p.chunk, 344);
  EXPECT_LE(p.boxes / 9 * 128, 17576 * 1.3);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
