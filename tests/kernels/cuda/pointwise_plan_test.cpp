// SPDX-License-Identifier: Apache-2.0
// Boxes and cuts of 1x1 convolutions of planes: every step of every image in exactly one part, every result
// in one block.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/dense/pointwise.h"

namespace retrograd::kernels::cuda::pointwise_plan_test {
namespace {

Conv conv_of(int64_t batch, int64_t groups, int64_t x_channels, int64_t y_channels, int64_t h, int64_t w) {
  Conv conv{};
  conv.batch = batch;
  conv.groups = groups;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  conv.axes[0] = {1, 1, 1, 1, 1, 0};
  conv.axes[1] = {h, h, 1, 1, 1, 0};
  conv.axes[2] = {w, w, 1, 1, 1, 0};
  const auto planes = [&](Tensor& t, int64_t channels) {
    t.dtype = DType::kF16;
    const int64_t strides[5] = {channels * h * w, h * w, h * w, w, 1};
    std::copy(strides, strides + 5, t.strides);
  };
  planes(conv.x, groups * x_channels);
  planes(conv.y, groups * y_channels);
  conv.w.dtype = DType::kF16;
  const int64_t strides[5] = {x_channels, 1, 1, 1, 1};
  std::copy(strides, strides + 5, conv.w.strides);
  return conv;
}

TEST(PointwisePlanTest, BlocksCoverResults) {
  for (const Result result : {Result::kForward, Result::kGradInput}) {
    const Conv conv = conv_of(3, 2, 72, 200, 20, 24);
    PointwisePlan plan{};
    ASSERT_TRUE(plan_pointwise(conv, result, DType::kF16, &plan));
    const PointwiseWalk& w = plan.walk;
    const bool narrow = plan.cut == PointwiseCut::k128x128 || plan.cut == PointwiseCut::k192x128;
    const int columns = narrow ? 128 : 256, rows = plan.cut == PointwiseCut::k64x256    ? 64
                                                   : plan.cut >= PointwiseCut::k192x128 ? 192
                                                                                        : 128;
    EXPECT_EQ(w.rows, result == Result::kForward ? 200 : 72);
    EXPECT_EQ(w.terms, result == Result::kForward ? 72 : 200);
    EXPECT_EQ(w.columns, 480);
    EXPECT_GE(static_cast<int>(w.across_m.divisor) * rows, w.rows);
    EXPECT_GE(static_cast<int>(w.across_n.divisor) * columns, w.columns);
    EXPECT_EQ(plan.blocks, int64_t{w.across_m.divisor} * w.across_n.divisor * 3 * 2);
    EXPECT_EQ(w.tiles, plan.blocks);
    EXPECT_EQ(w.row_step, 480);
    EXPECT_EQ(w.image_step, w.rows * 2 * 480);
  }
}

TEST(PointwisePlanTest, PartsHoldAllSteps) {
  for (const Conv& conv : {conv_of(64, 1, 64, 64, 56, 56), conv_of(1, 1, 512, 512, 8, 8),
                           conv_of(7, 4, 16, 24, 10, 20), conv_of(300, 1, 8, 8, 4, 2)}) {
    PointwisePlan plan{};
    ASSERT_TRUE(plan_pointwise(conv, Result::kGradWeight, DType::kF16, &plan));
    const int64_t places = conv.axes[1].x * conv.axes[2].x;
    const int64_t steps = conv.batch * ((places + 63) / 64);
    EXPECT_EQ(plan.walk.image_steps.divisor, (places + 63) / 64);
    EXPECT_GE(plan.parts * plan.walk.part_steps, steps);
    EXPECT_EQ(plan.results == WeightResults::kParts, plan.parts > 1 || conv.groups > 1);
  }
}

TEST(PointwisePlanTest, ManyPlacesAndFewWeightsAreCutIntoParts) {
  PointwisePlan plan{};
  ASSERT_TRUE(plan_pointwise(conv_of(64, 1, 64, 64, 56, 56), Result::kGradWeight, DType::kF16, &plan));
  EXPECT_GT(plan.parts, 16);
  ASSERT_TRUE(plan_pointwise(conv_of(1, 1, 344, 344, 232, 232), Result::kGradWeight, DType::kF16, &plan));
  EXPECT_EQ(plan.cut, PointwiseCut::k192x192);  // 384 x 384 of 344 x 344 with four tiles
  EXPECT_EQ(plan.parts, 33);
  ASSERT_TRUE(plan_pointwise(conv_of(1, 1, 2048, 2048, 8, 8), Result::kGradWeight, DType::kF16, &plan));
  EXPECT_EQ(plan.parts, 1);
  EXPECT_EQ(plan.results, WeightResults::kInPlace);
}

TEST(PointwisePlanTest, BoxesNeedWholeVectors) {
  Conv conv = conv_of(2, 1, 16, 16, 14, 14);  // 196 places
  EXPECT_FALSE(has_boxes(conv.x, 2, 16, 196));
  conv = conv_of(2, 1, 16, 16, 28, 28);
  EXPECT_TRUE(has_boxes(conv.x, 2, 16, 784));
  conv.x.strides[0] = 17 * 784;  // a slice of channels
  EXPECT_TRUE(has_boxes(conv.x, 2, 16, 784));
  conv.x.strides[0] = 0;  // one image for all
  EXPECT_FALSE(has_boxes(conv.x, 2, 16, 784));
  EXPECT_TRUE(has_boxes(conv.x, 1, 16, 784));
  conv.x.strides[1] = int64_t{1} << 40;
  EXPECT_FALSE(has_boxes(conv.x, 1, 16, 784));
  conv.x.strides[1] = 785;
  EXPECT_FALSE(has_boxes(conv.x, 1, 16, 784));
}

TEST(PointwisePlanTest, PiecesHoldEveryElementOnce) {
  for (const int64_t places : {1, 7, 8, 49, 196}) {
    Conv conv = conv_of(3, 2, 5, 11, 1, places);
    conv.x.strides[0] += 3;  // a gap between images
    std::vector<uint16_t> x(3 * conv.x.strides[0]), w(2 * 11 * 5);
    conv.x.data = x.data();
    conv.w.data = w.data();
    const PieceRows planes = plane_pieces(conv, true), weights = weight_pieces(conv);
    EXPECT_EQ(planes.end - planes.first, 2 * conv.x.strides[0] + 10 * places);
    EXPECT_EQ(weights.end - weights.first, 2 * 11 * 5);
    const auto count = [](const PieceRows& rows, std::vector<uint16_t>& seen) {
      for (int group = 0; group < 2; ++group)
        for (int row = 0; row < 128; ++row)
          for (uint32_t number = 0; number < rows.all + 16; ++number) {
            const PieceRows::Piece piece = rows.piece(group, row, number);
            for (int i = 0; i < piece.count; ++i) ++seen.at(piece.offset + i);
          }
    };
    count(planes, x);
    count(weights, w);
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i)
      EXPECT_EQ(x[i], i % conv.x.strides[0] < 10 * places ? 1 : 0);
    EXPECT_TRUE(std::all_of(w.begin(), w.end(), [](uint16_t times) { return times == 1; }));
    // Group 1, channel 2, image 1.
    EXPECT_EQ(planes.piece(1, 2, static_cast<uint32_t>((places + 7) / 8)).offset,
              conv.x.strides[0] + 7 * places);
  }
}

TEST(PointwisePlanTest, PiecesWhereBoxesEnd) {
  PointwisePlan plan{};
  for (const Result result : {Result::kForward, Result::kGradInput, Result::kGradWeight}) {
    ASSERT_TRUE(plan_pointwise(conv_of(64, 1, 64, 72, 14, 14), result, DType::kF16, &plan));
    EXPECT_TRUE(plan.pieces);
    const int joined = 64 * 25 * 8;
    const bool weights = result == Result::kGradWeight;
    EXPECT_EQ(weights ? plan.walk.terms : plan.walk.columns, joined);
    if (weights)
      EXPECT_GE(plan.parts * plan.walk.part_steps, joined / 64u);
    else
      EXPECT_EQ(plan.blocks, (joined + 127) / 128);
    // Weights of 91 channels lie at odd addresses; grad_weight writes them elsewhere first.
    ASSERT_TRUE(plan_pointwise(conv_of(2, 1, 91, 64, 16, 16), result, DType::kF16, &plan));
    EXPECT_EQ(plan.pieces, !weights);
  }
}

TEST(PointwisePlanTest, BoxesOfAGroupEndWithIt) {
  const Conv conv = conv_of(3, 2, 24, 40, 8, 16);
  const BoxMap x = plane_boxes(conv, true, 64), w = weight_boxes(conv, 128);
  EXPECT_EQ(x.sizes[0], 128u);
  EXPECT_EQ(x.sizes[1], 24u);
  EXPECT_EQ(x.sizes[2], 2u);
  EXPECT_EQ(x.sizes[3], 3u);
  EXPECT_EQ(x.strides[0], 128u * 2);
  EXPECT_EQ(x.strides[1], 24u * 128 * 2);
  EXPECT_EQ(x.strides[2], 48u * 128 * 2);
  EXPECT_EQ(w.sizes[0], 24u);
  EXPECT_EQ(w.sizes[1], 40u);
  EXPECT_EQ(w.strides[0], 48u);
  EXPECT_EQ(w.strides[1], 40u * 48);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::pointwise_plan_test
