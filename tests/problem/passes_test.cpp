// SPDX-License-Identifier: Apache-2.0
// The canonical form: unit axes in front, transposed by exchange of roles, (T,B,C) by strides, empty results
// left out.
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::problem {
namespace {

Problem problem_of(const char* text) {
  auto request = parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  auto problem = judge(request.value());
  EXPECT_TRUE(problem.is_ok()) << problem.status().message();
  return std::move(problem).value();
}

std::vector<std::string> pass_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const Pass& pass : problem.passes) names.emplace_back(name_of(pass));
  return names;
}

using Names = std::vector<std::string>;

TEST(PassesTest, OneDimensionIsThreeWithUnitAxes) {
  const Problem problem = problem_of("conv input=2x3x9 weight=4x3x3 stride=2 padding=1 dilation=2");
  const auto& pass = std::get<ConvPass>(problem.passes[0]);
  EXPECT_EQ(pass.kind, ConvPassKind::kGradInput);
  EXPECT_EQ(pass.axes[0].x, 1);
  EXPECT_EQ(pass.axes[1].kernel, 1);
  EXPECT_EQ(pass.axes[2].x, 9);
  EXPECT_EQ(pass.axes[2].y, 4);
  EXPECT_EQ(pass.axes[2].pad_lo, 1);
  EXPECT_EQ(pass.x.strides, (Strides5{27, 9, 0, 0, 1}));
}

TEST(PassesTest, StridesOfAxesOfOnePlaceStayWithinTheView) {
  constexpr int64_t kFar = int64_t{1} << 60;
  auto request = parse_request("conv input=1x1x6x5 weight=2x1x3x3");
  ASSERT_TRUE(request.is_ok());
  auto& conv = std::get<ConvRequest>(request.value());
  conv.input.strides = {-kFar, kFar, 5, 1};
  const auto problem = judge(request.value());
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  const auto& weight = std::get<ConvPass>(problem.value().passes[1]);
  EXPECT_EQ(weight.kind, ConvPassKind::kGradWeight);
  EXPECT_EQ(weight.x.strides, (Strides5{-30, 30, 0, 5, 1}));
}

TEST(PassesTest, TransposedExchangesTheRoles) {
  const Problem problem = problem_of("conv input=2x4x5x5 weight=4x3x2x2 stride=2x2 transposed=1");
  EXPECT_EQ(pass_names(problem), (Names{"forward", "grad_weight", "grad_bias"}));
  const auto& forward = std::get<ConvPass>(problem.passes[0]);
  EXPECT_EQ(forward.x.operand, Operand::kGradOutput);
  EXPECT_EQ(forward.y.operand, Operand::kGradInput);
  EXPECT_EQ(forward.x_channels, 3);
  EXPECT_EQ(forward.y_channels, 4);
  EXPECT_EQ(forward.axes[2].x, 10);
  EXPECT_EQ(forward.axes[2].y, 5);
  const auto& weight = std::get<ConvPass>(problem.passes[1]);
  EXPECT_EQ(weight.x.operand, Operand::kGradOutput);
  EXPECT_EQ(weight.y.operand, Operand::kInput);
  EXPECT_TRUE(reads(problem.passes[1], Operand::kInput));
  EXPECT_FALSE(reads(problem.passes[1], Operand::kWeight));
  EXPECT_FALSE(reads(problem.passes[1], Operand::kGradWeight));
}

TEST(PassesTest, OutputPaddingInFrontShiftsTheWindow) {
  const Problem problem = problem_of(
      "conv input=1x2x4x3 weight=2x3x3x3 stride=3x3 padding=1x1 output_padding=2x0x0x1 transposed=1");
  const auto& pass = std::get<ConvPass>(problem.passes[0]);
  EXPECT_EQ(pass.axes[1].pad_lo, -1);
  EXPECT_EQ(pass.axes[2].pad_lo, 1);
}

TEST(PassesTest, TbcIsConvolutionWithOtherStrides) {
  const Problem problem = problem_of("conv_tbc input=7x2x3 weight=3x3x4 pad=1");
  const auto& pass = std::get<ConvPass>(problem.passes[1]);
  EXPECT_EQ(pass.batch, 2);
  EXPECT_EQ(pass.x_channels, 3);
  EXPECT_EQ(pass.y_channels, 4);
  EXPECT_EQ(pass.x.strides, (Strides5{3, 1, 0, 0, 6}));
  EXPECT_EQ(pass.w.strides, (Strides5{1, 4, 0, 0, 12}));
}

TEST(PassesTest, MasksAndEmptyResultsLeavePassesOut) {
  EXPECT_EQ(pass_names(problem_of("conv input=1x1x4 weight=1x1x1 mask=none")), Names{});
  EXPECT_EQ(pass_names(problem_of("conv input=1x1x4 weight=1x1x1 mask=wb")),
            (Names{"grad_weight", "grad_bias"}));
  EXPECT_EQ(pass_names(problem_of("conv input=0x3x5x5 weight=4x3x3x3")), (Names{"grad_weight", "grad_bias"}));
  EXPECT_EQ(pass_names(problem_of("conv input=2x0x5x5 weight=4x0x3x3")), Names{"grad_bias"});
  EXPECT_EQ(pass_names(problem_of("avgpool input=0x3x5 kernel=2")), Names{});
}

TEST(PassesTest, ForwardIsOnePassWithItsBias) {
  const Problem plain = problem_of("conv input=2x3x9 weight=4x3x3 forward=1 bias=4:f32@-2 dtype=f16");
  ASSERT_EQ(pass_names(plain), Names{"forward"});
  const auto& pass = std::get<ConvPass>(plain.passes[0]);
  EXPECT_EQ(pass.x.operand, Operand::kInput);
  EXPECT_EQ(pass.y.operand, Operand::kOutput);
  ASSERT_TRUE(pass.bias.has_value());
  EXPECT_EQ(pass.bias->dtype, DType::kF32);
  EXPECT_EQ(pass.bias->strides[1], -2);
  for (const Operand read : {Operand::kInput, Operand::kWeight, Operand::kBias})
    EXPECT_TRUE(reads(plain.passes[0], read)) << name_of(read);
  EXPECT_FALSE(reads(plain.passes[0], Operand::kOutput));
  EXPECT_EQ(result_of(plain.passes[0]).operand, Operand::kOutput);
  EXPECT_EQ(plain.facts(Operand::kBias).lowest_byte, -24);
  EXPECT_FALSE(std::get<ConvPass>(problem_of("conv input=2x3x9 weight=4x3x3 forward=1").passes[0]).bias);
}

TEST(PassesTest, TransposedForwardIsTheAdjoint) {
  const Problem problem =
      problem_of("conv input=2x4x5x5 weight=4x3x2x2 stride=2x2 transposed=1 forward=1 bias=3");
  ASSERT_EQ(pass_names(problem), Names{"grad_input"});
  const auto& pass = std::get<ConvPass>(problem.passes[0]);
  EXPECT_EQ(pass.y.operand, Operand::kInput);
  EXPECT_EQ(pass.x.operand, Operand::kOutput);
  EXPECT_EQ(pass.x_channels, 3);
  EXPECT_EQ(pass.axes[2].x, 10);
}

TEST(PassesTest, ForwardWithoutInputChannelsWritesItsBias) {
  const Problem problem = problem_of("conv input=2x0x5x5 weight=4x0x3x3 forward=1 bias=4");
  ASSERT_EQ(pass_names(problem), Names{"forward"});
  EXPECT_EQ(std::get<ConvPass>(problem.passes[0]).batch, 2);
  EXPECT_EQ(pass_names(problem_of("conv input=0x3x5x5 weight=4x3x3x3 forward=1")), Names{});
  EXPECT_EQ(pass_names(problem_of("avgpool input=0x3x5 kernel=2 forward=1")), Names{});
}

TEST(PassesTest, PoolingForwardReadsItsInput) {
  const Problem problem = problem_of("avgpool input=2x3x5 kernel=2 forward=1");
  ASSERT_EQ(pass_names(problem), Names{"avgpool_forward"});
  EXPECT_TRUE(reads(problem.passes[0], Operand::kInput));
  EXPECT_EQ(result_of(problem.passes[0]).operand, Operand::kOutput);
}

TEST(PassesTest, AnEmptyOperandHasNoBatchToWalk) {
  const Problem problem =
      problem_of("conv_tbc input=0x2305843009213693952x2 weight=1x2x2 grad_output=0x2305843009213693952x2");
  EXPECT_EQ(std::get<ConvPass>(problem.passes.at(0)).batch, 0);
  EXPECT_EQ(std::get<BiasPass>(problem.passes.at(1)).batch, 0);
}

TEST(PassesTest, OperandsKnowTheBytesTheySpan) {
  const Problem problem = problem_of("conv input=1x1x4:f16@4x4x-1 weight=1x1x1 grad_output=1x1x4");
  const OperandFacts& input = problem.facts(Operand::kInput);
  EXPECT_STREQ(input.name, "input");
  EXPECT_EQ(input.lowest_byte, -6);
  EXPECT_EQ(input.end_byte, 2);
}

}  // namespace
}  // namespace retrograd::problem
