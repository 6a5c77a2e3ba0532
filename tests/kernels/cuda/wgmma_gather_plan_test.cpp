// SPDX-License-Identifier: Apache-2.0
// Launches of 16-bit products on Hopper: few tiles with long sums are shared among blocks, residues of
// strides share a launch, and both are the problem's alone.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/dense/wgmma_gather.h"

namespace retrograd::kernels::cuda::wgmma_gather_plan_test {
namespace {

ProductAxis axis(int64_t results, int64_t taps) {
  return {.results = results,
          .result_step = 1,
          .result_first = 0,
          .source = results,
          .step = 1,
          .first = -(taps / 2),
          .taps = taps,
          .tap_step = 1,
          .tap_first = 0,
          .tap_stride = 1,
          .kernel = taps};
}

// A forward pass of square planes whose result is channels last, or planes.
GatherProduct product_of(int64_t batch, int64_t channels, bool last) {
  GatherProduct product{};
  product.forward = true;
  product.math = ProductMath::kF16;
  product.conv.batch = batch;
  product.conv.groups = 1;
  product.conv.x_channels = product.conv.y_channels = channels;
  product.conv.y.strides[1] = last ? 1 : 1000;
  return product;
}

GatherLaunch launch_of(const GatherProduct& product, const ProductAxes& axes) {
  const auto launches = wgmma_gather_launches(product, {&axes, 1});
  EXPECT_EQ(launches.size(), 1U);
  return launches.at(0);
}

TEST(WgmmaGatherPlanTest, FewTilesWithLongSumsAreShared) {
  for (const bool last : {false, true}) {
    // 16 tiles of 128 x 128, 216 steps: 67 us in one block each.
    const ProductAxes deep{axis(8, 3), axis(8, 3), axis(8, 3)};
    const GatherLaunch few = launch_of(product_of(1, 504, last), deep);
    EXPECT_GE(few.shares, 5);
    EXPECT_LT(few.microseconds, 25);
    const ProductAxes wide{axis(1, 1), axis(38, 11), axis(38, 11)};
    EXPECT_GE(launch_of(product_of(1, 280, last), wide).shares, 3);
  }
}

TEST(WgmmaGatherPlanTest, ManyTilesAndShortSumsAreNot) {
  const ProductAxes many{axis(1, 1), axis(100, 3), axis(100, 3)};
  EXPECT_EQ(launch_of(product_of(8, 256, true), many).shares, 1);
  const ProductAxes pointwise{axis(1, 1), axis(9, 1), axis(9, 1)};
  EXPECT_EQ(launch_of(product_of(1, 256, true), pointwise).shares, 1);
}

// A share has four steps at least, and a cluster eight blocks at most.
TEST(WgmmaGatherPlanTest, SharesAreBounded) {
  for (const int64_t batch : {1, 3, 20})
    for (const int64_t channels : {8, 64, 200, 1024})
      for (const int64_t size : {1, 4, 14, 40})
        for (const int64_t taps : {1, 2, 3, 7}) {
          const ProductAxes axes{axis(1, 1), axis(size, taps), axis(size, taps)};
          const GatherLaunch launch = launch_of(product_of(batch, channels, true), axes);
          EXPECT_GE(launch.shares, 1);
          EXPECT_LE(launch.shares, 8);
          EXPECT_GT(launch.microseconds, 0);
          const int64_t steps = taps * taps * ((channels + 31) / 32);
          if (launch.shares > 1) {
            EXPECT_GE(steps, 4 * launch.shares);
          }
        }
}

TEST(WgmmaGatherPlanTest, ResiduesShareLaunches) {
  const GatherProduct product = product_of(2, 160, true);
  for (const size_t count : {1, 4, 9, 10, 16, 27}) {
    const std::vector<ProductAxes> residues(count, {axis(1, 1), axis(20, 2), axis(20, 2)});
    const auto launches = wgmma_gather_launches(product, residues);
    EXPECT_EQ(launches.size(), (count + kMostGathered - 1) / kMostGathered);
    size_t products = 0;
    for (const GatherLaunch& launch : launches) {
      EXPECT_EQ(launch.residues.data(), residues.data() + products);
      products += launch.residues.size();
    }
    EXPECT_EQ(products, count);
  }
  // Four products of one launch are not four times one: their tiles fill the GPU together.
  const std::vector<ProductAxes> four(4, {axis(1, 1), axis(40, 2), axis(40, 2)});
  EXPECT_LT(wgmma_gather_launches(product, four)[0].microseconds,
            2.5 * launch_of(product, four[0]).microseconds);
}

TEST(WgmmaGatherPlanTest, EveryShapeHasAName) {
  for (int shape = 0; shape <= static_cast<int>(GatherShape::k512x32Shared); ++shape)
    EXPECT_NE(std::string(name_of(static_cast<GatherShape>(shape))).find(" x "), std::string::npos);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::wgmma_gather_plan_test
