// SPDX-License-Identifier: Apache-2.0
// Groups that group_rows shares out to blocks: every group has a block, no block more than 256 bytes of a
// place, and weights fit into shared memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cuda/few_channels/group_rows.h"

namespace retrograd::test {
namespace {

using kernels::cuda::Conv;
using kernels::cuda::group_rows_plan;
using kernels::cuda::GroupRows;

Conv conv_of(int64_t groups, int64_t x_channels, int64_t y_channels, int64_t kernel) {
  Conv conv{};
  conv.batch = 1;
  conv.groups = groups;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  for (auto& axis : conv.axes) axis = {9, 9, 1, 1, 1, 0};
  conv.axes[1].kernel = conv.axes[2].kernel = kernel;
  return conv;
}

TEST(GroupRowsPlanTest, EveryGroupHasABlock) {
  for (const int64_t groups : {2, 3, 9, 16, 17, 100, 4001})
    for (const int64_t x : {8, 16, 24, 32})
      for (const int64_t y : {8, 16, 24, 32})
        for (const bool forward : {false, true}) {
          const GroupRows plan = group_rows_plan(conv_of(groups, x, y, 3), forward);
          ASSERT_GT(plan.groups, 0);
          EXPECT_EQ(plan.terms * 8, forward ? x : y);
          EXPECT_EQ(plan.columns * 8, forward ? y : x);
          EXPECT_LE(plan.groups * std::max(x, y), 128);
          EXPECT_GE(int64_t{plan.groups} * plan.slabs, groups);
          EXPECT_LT(int64_t{plan.groups} * (plan.slabs - 1), groups);  // none is without one
          EXPECT_EQ(plan.weight_bytes, 9 * plan.groups * x * y * 2);
          EXPECT_LE(plan.weight_bytes, 96 * 1024);
        }
}

TEST(GroupRowsPlanTest, DeclinesWhatIsNotWholeChunks) {
  EXPECT_EQ(group_rows_plan(conv_of(1, 8, 8, 1), false).groups, 0);
  EXPECT_EQ(group_rows_plan(conv_of(4, 12, 8, 1), false).groups, 0);
  EXPECT_EQ(group_rows_plan(conv_of(4, 8, 4, 1), false).groups, 0);
  EXPECT_EQ(group_rows_plan(conv_of(4, 40, 8, 1), false).groups, 0);
  EXPECT_EQ(group_rows_plan(conv_of(16, 8, 8, 11), false).groups, 0);
  EXPECT_EQ(group_rows_plan(conv_of(9, 8, 8, 1), false).groups, 9);
}

}  // namespace
}  // namespace retrograd::test
