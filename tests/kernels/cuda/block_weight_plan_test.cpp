// SPDX-License-Identifier: Apache-2.0
// grad_weight of few channels on a GPU: every weight is the sum of one warp's tap, and taps are where the box
// has them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/few_channels/narrow_block_weight_plan.h"

namespace retrograd::kernels::cuda::block_weight {
namespace {

Conv conv_of(int64_t batch, int64_t groups, int64_t x_channels, int64_t y_channels, Axis h, Axis w) {
  Conv conv{};
  conv.batch = batch, conv.groups = groups, conv.x_channels = x_channels, conv.y_channels = y_channels;
  conv.axes[0] = {1, 1, 1, 1, 1, 0};
  conv.axes[1] = h, conv.axes[2] = w;
  return conv;
}

TEST(BlockWeightPlanTest, EveryWeightOnce) {
  std::mt19937 engine(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  int taken = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto axis = [&](int64_t most) {
      Axis a{1, draw(1, most), draw(1, 9), draw(1, 3), draw(1, 3), draw(0, 3)};
      a.x = (a.y - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
      return a;
    };
    const Axis h = axis(60), w = axis(300);
    const bool alike = draw(0, 2) == 0;
    const int64_t x_channels = alike ? int64_t{1} << draw(1, 4) : draw(1, 64);
    const Conv conv = conv_of(draw(1, 40), draw(1, 5), x_channels, alike ? x_channels : draw(1, 64), h, w);
    if (!has_block_grad_weight(conv)) continue;
    ++taken;
    const Cut p = cut_of(conv, trial % 2 == 0);
    ASSERT_LE(p.owners * p.shares, kMostWarps);
    ASSERT_LE(p.of_warp, kMostOfWarp);
    ASSERT_EQ(p.of_warp % 2, 1);
    ASSERT_GE(p.owners * p.of_warp, p.taps);
    ASSERT_LE(bytes_of(p), 96 << 10);
    ASSERT_GE(p.rows * p.row_tiles, p.yh);
    std::vector<int> written(static_cast<size_t>(p.weights), 0);
    const int blocks = (p.all_x + p.x_channels - 1) / p.x_channels * p.o_chunks * p.x_chunks;
    for (int block = 0; block < blocks; ++block) {
      const int o0 = block % p.o_chunks * kBlockChannels,
                c0 = block / p.o_chunks % p.x_chunks * kBlockChannels,
                group = block / p.o_chunks / p.x_chunks;
      const int x0 = group * p.x_channels + c0, y0 = group * p.y_channels + o0;
      const int x_live = std::min({p.x_channels - c0, kBlockChannels, p.all_x - x0}),
                y_live = std::min({p.y_channels - o0, kBlockChannels, p.all_y - y0});
      for (int tap = 0; tap < p.owners * p.of_warp; ++tap)
        for (int o = 0; o < y_live; ++o)
          for (int c = 0; c < x_live; ++c) {
            if (tap >= p.taps || (o0 + o) / p.in_group != c / p.in_group) continue;
            // Of the group that the weights say.
            ASSERT_EQ((x0 + c) / conv.x_channels, (y0 + o) / conv.y_channels);
            ++written[static_cast<size_t>(
                (int64_t{y0 + o} * p.x_in_group + (c0 + c) % p.x_in_group) * p.taps + tap)];
          }
    }
    for (const int times : written) ASSERT_EQ(times, 1);
    for (int tap = 0; tap < p.taps; ++tap) {
      const auto kw = static_cast<int>(w.kernel);
      ASSERT_EQ(tap_offset(p, tap), tap / kw * p.dilation_h * p.pitch + tap % kw * p.dilation_w);
    }
    // The last tap of the last place lies inside the box.
    ASSERT_LT((p.rows - 1) * p.stride_h * p.pitch + (p.yw - 1) * p.stride_w + tap_offset(p, p.taps - 1),
              p.box_rows * p.pitch);
  }
  EXPECT_GT(taken, 100);
}

TEST(BlockWeightPlanTest, FewBlocksMakeSmallerBoxes) {
  const Axis h{206, 206, 3, 1, 1, 1}, w{14, 14, 7, 1, 1, 3};
  const Cut p = cut_of(conv_of(15, 1, 16, 16, h, w), true);
  EXPECT_GE(p.tiles, 132 * 2);
  EXPECT_EQ(p.of_warp, 7);
  EXPECT_EQ(p.owners, 3);
  const Cut many = cut_of(conv_of(600, 1, 16, 16, h, w), true);
  EXPECT_GT(many.places, p.places);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::block_weight
