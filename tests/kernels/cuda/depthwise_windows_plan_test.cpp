// SPDX-License-Identifier: Apache-2.0
// Plans of depthwise convolutions with any window: taps of residues, roles of axes, shapes of blocks.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "kernels/cuda/depthwise_windows/windows_plan.h"

namespace retrograd::kernels::cuda {
namespace {

// Dense in the order of `axes`, innermost last.
void lay_out(Tensor& tensor, const std::array<int64_t, 5>& sizes, const std::array<size_t, 5>& axes) {
  int64_t stride = 1;
  for (size_t i = 5; i-- > 0;) {
    tensor.strides[axes[i]] = stride;
    stride *= sizes[axes[i]];
  }
}

TEST(DepthwiseWindowsPlanTest, TapsOfResidues) {
  const auto listed = [](const Axis& axis, int place) {
    const DepthwiseAxis a = window_axis(axis, false, 1, 1);
    const Taps taps = taps_at(a, place);
    std::vector<std::pair<int, int>> found;
    for (int j = 0; j < taps.count; ++j)
      found.emplace_back(taps.first + j * taps.apart, taps.base + j * a.step);
    return found;
  };
  using Pairs = std::vector<std::pair<int, int>>;  // tap, place of y
  EXPECT_EQ(listed({10, 5, 3, 2, 1, 1}, 0), (Pairs{{1, 0}}));
  EXPECT_EQ(listed({10, 5, 3, 2, 1, 1}, 1), (Pairs{{2, 0}, {0, 1}}));
  EXPECT_EQ(listed({10, 5, 3, 1, 2, 2}, 3), (Pairs{{2, 1}, {1, 3}, {0, 5}}));
  EXPECT_EQ(listed({20, 5, 4, 4, 2, 0}, 6), (Pairs{{3, 0}, {1, 1}}));
  EXPECT_EQ(listed({20, 5, 4, 4, 2, 0}, 7), (Pairs{}));
  EXPECT_EQ(listed({10, 5, 3, 2, 3, -1}, 0), (Pairs{{1, -2}}));
}

Conv shape(std::array<int64_t, 5> x, int64_t multiplier, std::array<int64_t, 3> kernel, bool channels_last) {
  Conv c{};
  c.batch = x[0], c.groups = x[1], c.x_channels = 1, c.y_channels = multiplier;
  for (size_t i = 0; i < 3; ++i) c.axes[i] = {x[i + 2], x[i + 2], kernel[i], 1, 1, kernel[i] / 2};
  const std::array<size_t, 5> planes{0, 1, 2, 3, 4}, last{0, 2, 3, 4, 1};
  for (const bool is_x : {true, false}) {
    Tensor& tensor = is_x ? c.x : c.y;
    tensor.dtype = DType::kF16;
    const int64_t channels = c.groups * (is_x ? 1 : multiplier);
    lay_out(tensor, {x[0], channels, x[2], x[3], x[4]}, channels_last ? last : planes);
  }
  lay_out(c.w, {c.groups * multiplier, 1, kernel[0], kernel[1], kernel[2]}, planes);
  return c;
}

TEST(DepthwiseWindowsPlanTest, Plans) {
  // Three axes: slides down, lanes along rows of W and on.
  GatherWindows g = gather_windows(shape({53, 62, 9, 9, 9}, 1, {3, 3, 3}, false), false, 2);
  EXPECT_FALSE(g.windows.channels_inside);
  EXPECT_EQ(g.windows.pack, 1);
  EXPECT_EQ(g.windows.inner.result_pitch, 1);
  EXPECT_EQ(g.windows.run.results, 53);
  EXPECT_EQ(g.windows.lanes, 256);
  // One axis in planes: slides over images. Channels last: along W.
  g = gather_windows(shape({47, 144, 1, 1, 117}, 3, {1, 1, 3}, false), false, 1);
  EXPECT_EQ(g.windows.slide.results, 47);
  EXPECT_EQ(g.windows.sources, 3);
  g = gather_windows(shape({47, 144, 1, 1, 117}, 1, {1, 1, 3}, true), false, 2);
  EXPECT_EQ(g.windows.slide.results, 117);
  EXPECT_EQ(g.windows.pack, 2);
  // Even lanes: 100 pairs in four blocks of 25.
  g = gather_windows(shape({3, 200, 1, 103, 103}, 1, {1, 7, 7}, true), false, 2);
  EXPECT_TRUE(g.windows.channels_inside);
  EXPECT_EQ(g.windows.lanes, 25);
  EXPECT_EQ(g.windows.channel_tiles, 4);

  const WeightWindows w = weight_windows(shape({17, 112, 1, 74, 74}, 3, {1, 3, 3}, false), 1);
  EXPECT_EQ(w.tile, TapTile::k3x3);
  EXPECT_EQ(w.weights, 336 * 9);
  EXPECT_GE(w.blocks, 1000);
  EXPECT_GE(w.items_a_part * w.parts, w.windows.items);
  EXPECT_LT(w.items_a_part * (w.parts - 1), w.windows.items);
}

TEST(DepthwiseWindowsPlanTest, TilesOfTaps) {
  const auto tile = [](int64_t kernel) {
    return weight_windows(shape({4, 8, 1, 30, 30}, 1, {1, kernel, kernel}, false), 1).tile;
  };
  EXPECT_EQ(tile(1), TapTile::k1x4);
  EXPECT_EQ(tile(2), TapTile::k3x3);
  EXPECT_EQ(tile(4), TapTile::k4x4);
  EXPECT_EQ(tile(5), TapTile::k3x3);
  EXPECT_EQ(tile(7), TapTile::k4x4);
  EXPECT_EQ(weight_windows(shape({4, 8, 1, 1, 30}, 1, {1, 1, 7}, false), 1).tile, TapTile::k1x8);
}

TEST(DepthwiseWindowsPlanTest, LargestKernelsFitIntoSharedMemory) {
  for (const bool last : {false, true}) {
    const Conv conv = shape({2, 8, 1, 64, 64}, 1, {1, 64, 64}, last);
    const DepthwiseWindows p = gather_windows(conv, true, 1).windows;
    const int64_t floats = last ? int64_t{p.taps} * p.tap_pitch : int64_t{p.rows} * p.channel_pitch;
    EXPECT_LE(floats * 4, kWindowsShared);
    EXPECT_GE(p.lanes, 1);
    EXPECT_GE(p.rows, 1);
  }
}

}  // namespace
}  // namespace retrograd::kernels::cuda
