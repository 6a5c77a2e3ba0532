// SPDX-License-Identifier: Apache-2.0
// How the sums of a part of grad_weight lie: each weight has one, and both ways between them agree.
#include "kernels/cuda/part_sums.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace retrograd::kernels::cuda {
namespace {

Conv conv_of(int64_t groups, int64_t x_channels, int64_t y_channels, int64_t kd, int64_t kh, int64_t kw) {
  Conv conv{};
  conv.groups = groups;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  conv.axes[0].kernel = kd;
  conv.axes[1].kernel = kh;
  conv.axes[2].kernel = kw;
  return conv;
}

void check(const Conv& conv, PartOrder order) {
  const PartSums sums = part_sums(conv, order);
  std::set<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>> seen;
  for (int64_t i = 0; i < sums.count; ++i) {
    if (!sums.has(i)) continue;
    const Index5 at = sums.at(i);
    ASSERT_EQ(sums.number(at), i);
    ASSERT_TRUE(at.n >= 0 && at.n < conv.groups * conv.y_channels && at.c >= 0 && at.c < conv.x_channels &&
                at.d >= 0 && at.d < conv.axes[0].kernel && at.h >= 0 && at.h < conv.axes[1].kernel &&
                at.w >= 0 && at.w < conv.axes[2].kernel)
        << i;
    ASSERT_TRUE(seen.insert({at.n, at.c, at.d, at.h, at.w}).second) << i;
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), conv.groups * conv.y_channels * conv.x_channels * sums.taps);
  EXPECT_FALSE(sums.has(sums.count));
}

TEST(PartSumsTest, EveryWeightHasOneSum) {
  for (const PartOrder order : {PartOrder::kTapsOfChannel, PartOrder::kChannelsOfTap}) {
    check(conv_of(5, 1, 1, 1, 1, 7), order);
    check(conv_of(3, 4, 2, 1, 3, 5), order);
    check(conv_of(2, 1, 3, 2, 3, 4), order);
    check(conv_of(1, 3, 7, 1, 7, 7), order);
  }
}

TEST(PartSumsTest, SixteenChannelsLeaveOutPairsOfDifferentGroups) {
  for (const int64_t channels : {1, 2, 4, 8, 16})
    check(conv_of(48 / channels, channels, channels, 1, 3, 3), PartOrder::kSixteens);
}

// group_weight.cu: a block of 16 channels, a tap, then a matrix of y channels by x channels of the block.
TEST(PartSumsTest, SixteensLieAsProductsLeaveThem) {
  const PartSums sums = part_sums(conv_of(8, 4, 4, 1, 3, 3), PartOrder::kSixteens);
  EXPECT_EQ(sums.count, 32 * 144);
  EXPECT_EQ(sums.number({21, 2, 0, 1, 2}), ((1 * 9 + 5) * 16 + 5) * 16 + 4 + 2);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
