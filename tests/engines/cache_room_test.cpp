// SPDX-License-Identifier: Apache-2.0
// Shares of caches, and that blocking keeps to them.
#include "engines/cpu/cache_room.h"

#include <gtest/gtest.h>

#include "engines/cpu/dense/dense_blocking.h"

namespace retrograd::engines::cpu {
namespace {

Caches caches_of(int64_t l1, int64_t l2, int shared_by) {
  return {{{{l1, shared_by}, {l2, shared_by}, {32 << 20, 8}}}};
}

TEST(CacheRoomTest, IsTheShareOfAProcessor) {
  const CacheRoom alone = room_in(caches_of(32 << 10, 1 << 20, 1));
  EXPECT_EQ(alone.l1, 8 << 10);
  EXPECT_EQ(alone.l2, 256 << 10);
  EXPECT_EQ(room_in(caches_of(32 << 10, 1 << 20, 2)).l2, 128 << 10);
  EXPECT_EQ(room_in(caches_of(1 << 10, 1 << 10, 1)).l2, 64 << 10);
  EXPECT_EQ(room_in(caches_of(1 << 30, 1 << 30, 1)).l2, 1 << 20);
}

TEST(CacheRoomTest, StripsAndSumsOfATaskKeepToIt) {
  problem::ConvPass pass;
  pass.kind = problem::ConvPassKind::kForward;
  pass.batch = 4;
  pass.x_channels = pass.y_channels = 256;
  for (problem::Window& w : pass.axes) w = {.x = 1, .y = 1, .kernel = 1, .stride = 1, .dilation = 1};
  pass.axes[1] = pass.axes[2] = {.x = 56, .y = 56, .kernel = 3, .stride = 1, .dilation = 1, .pad_lo = 1};
  for (const int64_t l2 : {256 << 10, 1 << 20, 4 << 20}) {
    const CacheRoom room = room_in(caches_of(32 << 10, l2, 1));
    const DenseBlocking cut = plan_dense_gather(pass, kernels::cpu::VectorShape{16, 32, true}, room);
    EXPECT_LE(count_of(cut.grid.box) * cut.m_block, room.l2 / 2) << l2;
    EXPECT_LE(cut.grid.box[0] * cut.plane() * cut.channels_per_block, room.l2 / 4) << l2;
  }
}

}  // namespace
}  // namespace retrograd::engines::cpu
