// SPDX-License-Identifier: Apache-2.0
// Tiles of FP32 products on Hopper: few tiles with long sums are shared, and how many shares there are is the
// problem's alone.
#include <gtest/gtest.h>

#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::kernels::cuda {
namespace {

TEST(F32GatherPlanTest, FewTilesAreShared) {
  const F32Tiles few = f32_gather_tiles(560, 840, 243, ProductMath::kF32, 132);
  EXPECT_GE(few.shares, 3);
  EXPECT_LT(few.time, 110);  // of 192 in one block a tile
  EXPECT_GE(f32_gather_tiles(800, 504, 144, ProductMath::kTF32, 132).shares, 2);
}

TEST(F32GatherPlanTest, ManyTilesAndShortSumsAreNot) {
  EXPECT_EQ(f32_gather_tiles(100000, 256, 72, ProductMath::kF32, 132).shares, 1);
  EXPECT_EQ(f32_gather_tiles(128, 64, 8, ProductMath::kF32, 132).shares, 1);
}

TEST(F32GatherPlanTest, SharesDoNotDependOnTheGpu) {
  for (const int64_t places : {60, 800, 5000, 40000})
    for (const int64_t columns : {40, 128, 504, 2000})
      for (const int64_t steps : {9, 40, 144, 400})
        for (const ProductMath math : {ProductMath::kF32, ProductMath::kTF32}) {
          const int shares = f32_gather_tiles(places, columns, steps, math, 132).shares;
          EXPECT_LE(shares, 8);
          EXPECT_GE(steps / shares, 8);
          for (const int processors : {1, 16, 78, 144})
            EXPECT_EQ(f32_gather_tiles(places, columns, steps, math, processors).shares, shares);
        }
}

}  // namespace
}  // namespace retrograd::kernels::cuda
