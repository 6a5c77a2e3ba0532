// SPDX-License-Identifier: Apache-2.0
// Problems of one type and of one gradient.
#include "tools/problems/problems.h"

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"
#include "tools/measure/work.h"

namespace retrograd::tools::problems_test {
namespace {

problem::Request parsed(const char* text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return std::move(request).value();
}

constexpr const char* kConv = "conv input=1x2x9 weight=4x2x3";
constexpr const char* kTbc = "conv_tbc input=5x1x2 weight=1x2x2";
constexpr const char* kPool = "avgpool input=1x2x9 kernel=2";

TEST(ProblemsTest, OneGradientAtATime) {
  const auto request = parsed(kConv);
  const auto text = [&](Gradient gradient) { return to_text(*with_gradient(request, gradient)); };
  EXPECT_EQ(text(Gradient::kInput), "conv input=1x2x9 weight=4x2x3 grad_output=1x4x7 mask=i");
  EXPECT_EQ(text(Gradient::kWeight), "conv input=1x2x9 weight=4x2x3 grad_output=1x4x7 mask=w");
  EXPECT_EQ(text(Gradient::kBias), "conv input=1x2x9 weight=4x2x3 grad_output=1x4x7 mask=b");
  EXPECT_EQ(text(Gradient::kAll), to_text(request));
  EXPECT_FALSE(with_gradient(parsed("conv input=1x2x9 weight=4x2x3 mask=wb"), Gradient::kInput));
  EXPECT_FALSE(with_gradient(parsed(kTbc), Gradient::kInput));
  EXPECT_TRUE(with_gradient(parsed(kPool), Gradient::kInput));
  EXPECT_FALSE(with_gradient(parsed(kPool), Gradient::kWeight));
}

TEST(ProblemsTest, LayoutsOfEveryTensor) {
  const auto text = [](const char* problem, Layout layout) {
    return to_text(with_layout(parsed(problem), layout));
  };
  EXPECT_EQ(
      text("conv input=2x3x4x5 weight=6x3x2x2", Layout::kChannelsLast),
      to_text(parsed("conv input=2x3x4x5@60x1x15x3 weight=6x3x2x2@12x1x6x3 grad_output=2x6x3x4@72x1x24x6 "
                     "grad_input=2x3x4x5@60x1x15x3 grad_weight=6x3x2x2@12x1x6x3")));
  EXPECT_EQ(text("conv input=2x3x4x5@60x1x15x3 weight=6x3x2x2@12x1x6x3 grad_input=2x3x4x5", Layout::kPlain),
            to_text(parsed("conv input=2x3x4x5 weight=6x3x2x2")));
  EXPECT_EQ(text("avgpool input=2x3x4x4 kernel=2", Layout::kChannelsLast),
            to_text(parsed("avgpool input=2x3x4x4@48x1x12x3 grad_output=2x3x2x2@12x1x6x3 kernel=2 "
                           "grad_input=2x3x4x4@48x1x12x3")));
  EXPECT_EQ(text(kTbc, Layout::kChannelsLast), to_text(parsed(kTbc)));
  for (const Dims& odd : {Dims{5}, Dims{1, int64_t{1} << 62, 4, 4}}) {
    auto conv = std::get<problem::ConvRequest>(parsed(kConv));
    conv.input = problem::dense_view(DType::kF32, odd);
    EXPECT_FALSE(problem::judge(with_layout(conv, Layout::kChannelsLast)).is_ok());
  }
}

TEST(ProblemsTest, EveryTypeIsLegalForConvolutions) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kHiF8, DType::kE4M3}) {
    const auto problem = problem::judge(with_dtype(parsed(kConv), dtype));
    EXPECT_TRUE(problem.is_ok()) << problem.status().message();
  }
}

ProblemSource text_source(const char* text) {
  ProblemSource source;
  source.texts = {text};
  return source;
}

TEST(ProblemsTest, TypeAndMathModeOfAll) {
  ProblemSource source = text_source(kConv);
  source.files = {RETROGRAD_SOURCE_DIR "/bench/shapes/avgpool.csv"};
  source.rows = "tiny";
  source.dtype = "bf16";
  source.math_mode = 1;
  const auto problems = collect(source);
  ASSERT_TRUE(problems.is_ok()) << problems.status().message();
  ASSERT_EQ(problems.value().size(), 2U);
  EXPECT_EQ(to_text(problems.value()[0].request),
            "conv input=1x2x9 weight=4x2x3 grad_output=1x4x7 math=1 dtype=bf16");
  EXPECT_EQ(problems.value()[1].name, "ap_tiny_2x2s2_8x8_c4");
}

TEST(ProblemsTest, AForwardProblemHasItsOutputOnly) {
  const problem::Request forward = parsed("conv input=1x2x9 weight=4x2x3 bias=4 forward=1"),
                         backward = parsed(kConv);
  EXPECT_EQ(to_text(*with_gradient(forward, Gradient::kOutput)), to_text(forward));
  for (const Gradient gradient : {Gradient::kInput, Gradient::kWeight, Gradient::kBias, Gradient::kAll})
    EXPECT_FALSE(with_gradient(forward, gradient).has_value());
  EXPECT_FALSE(with_gradient(backward, Gradient::kOutput).has_value());
  EXPECT_EQ(to_text(with_dtype(forward, DType::kF16)),
            "conv input=1x2x9 weight=4x2x3 output=1x4x7 bias=4 forward=1 dtype=f16");
}

TEST(ProblemsTest, FailuresPoint) {
  const auto missing = collect(text_source("conv input=1x2x9"));
  ASSERT_FALSE(missing.is_ok());
  EXPECT_NE(missing.status().message().find("'weight' is missing\nconv input=1x2x9\n                ^"),
            std::string::npos);
}

// 7 outputs × 3 taps × 4 × 2 channels; padding adds outputs but no products outside the input.
TEST(WorkTest, PaddingIsNotCounted) {
  const auto work = [](const char* text) { return work_of(problem::judge(parsed(text)).value()); };
  EXPECT_EQ(work("conv input=1x2x9 weight=4x2x3 mask=i").operations, 2 * 7 * 3 * 4 * 2);
  EXPECT_EQ(work("conv input=1x2x9 weight=4x2x3 padding=1 mask=i").operations, 2 * (9 * 3 - 2) * 4 * 2);
  EXPECT_EQ(work("conv input=1x2x9 weight=4x2x3 mask=b").operations, 28);
  EXPECT_EQ(work("avgpool input=1x2x9 kernel=2").operations, 2 * 4 * 2);
  EXPECT_EQ(work("conv input=1x2x9 weight=4x2x3 forward=1 bias=4").operations, 2 * 7 * 3 * 4 * 2);
  EXPECT_EQ(work("conv input=1x2x9 weight=4x2x3 forward=1 bias=4").bytes, 4 * (18 + 24 + 4 + 28));
}

TEST(WorkTest, EachTensorOnce) {
  const auto bytes = [](const char* text) { return work_of(problem::judge(parsed(text)).value()).bytes; };
  EXPECT_EQ(bytes("conv input=1x2x9 weight=4x2x3 mask=i"),
            4 * (28 + 24 + 18));  // grad_output, weight, result
  EXPECT_EQ(bytes("conv input=1x2x9 weight=4x2x3 mask=w dtype=f16"), 2 * (28 + 24 + 18));
  EXPECT_EQ(bytes("conv input=1x2x9 weight=4x2x3"), 4 * (28 + 24 + 18 + 18 + 24 + 4));
  EXPECT_EQ(bytes("conv input=1x2x9 weight=4x2x3@0x0x0 mask=i"), 4 * (28 + 1 + 18));
}

}  // namespace
}  // namespace retrograd::tools::problems_test
