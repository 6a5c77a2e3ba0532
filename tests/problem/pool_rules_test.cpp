// SPDX-License-Identifier: Apache-2.0
// Every rule an average-pooling request can break: the code, and the argument, value and rule in the message.
#include "rule_case.h"

namespace retrograd::problem {
namespace {

class PoolRuleTest : public testing::TestWithParam<RuleCase> {};

TEST_P(PoolRuleTest, IsExplained) { expect_explained(GetParam()); }

const RuleCase kPoolRules[] = {
    {"rank", "avgpool input=3x3 kernel=2", Code::kBadShape, {"input.shape has rank 2", "3, 4 or 5"}},
    {"rank_2d", "avgpool input=1x1x2x3x3 kernel=2 spatial=2", Code::kBadShape, {"rank 5", "expected 3 or 4"}},
    {"grad_output_rank",
     "avgpool input=1x1x4 kernel=2 grad_output=1x1x2x1",
     Code::kBadShape,
     {"grad_output.shape has rank 4"}},
    {"kernel_missing",
     "avgpool input=1x1x4",
     Code::kInvalidArgument,
     {"kernel has 0 entries, expected 1 or 1"}},
    {"kernel_length",
     "avgpool input=1x1x4x4x4 kernel=2x2",
     Code::kInvalidArgument,
     {"kernel has 2 entries", "1 or 3"}},
    {"kernel_zero",
     "avgpool input=1x1x4x4 kernel=2x0",
     Code::kInvalidArgument,
     {"kernel[1] is 0", "at least 1"}},
    {"stride_length",
     "avgpool input=1x1x4x4 kernel=2x2 stride=1x1x1",
     Code::kInvalidArgument,
     {"stride has 3 entries", "0 (as the kernel), 1 or 2"}},
    {"stride_zero",
     "avgpool input=1x1x4x4 kernel=2x2 stride=0x1",
     Code::kInvalidArgument,
     {"stride[0] is 0"}},
    {"padding_length",
     "avgpool input=1x1x4x4 kernel=2x2 padding=0x0x0",
     Code::kInvalidArgument,
     {"padding has 3 entries"}},
    {"padding_negative",
     "avgpool input=1x1x4x4 kernel=2x2 padding=-1",
     Code::kInvalidArgument,
     {"padding[0] is -1"}},
    {"padding_half",
     "avgpool input=1x1x4x4 kernel=4x3 padding=2x2",
     Code::kInvalidArgument,
     {"padding[1] is 2, expected at most 1", "kernel of 3"}},
    {"empty_space", "avgpool input=1x1x0 kernel=1", Code::kBadShape, {"input.shape[2] is 0", "at least 1"}},
    {"does_not_fit",
     "avgpool input=1x1x3 kernel=5 stride=1 grad_output=1x1x0",
     Code::kBadShape,
     {"does not fit", "-1"}},
    {"size",
     "avgpool input=1x1x7 kernel=2 stride=2 grad_output=1x1x4",
     Code::kBadShape,
     {"grad_output.shape[2] is 4, expected 3 = floor((7 + 2*0 - 2)/2) + 1", "floor mode"}},
    {"size_ceil",
     "avgpool input=1x1x7 kernel=2 stride=2 ceil=1 grad_output=1x1x3",
     Code::kBadShape,
     {"is 3, expected 4 = floor((7 + 2*0 - 2 + 2 - 1)/2) + 1", "ceil mode"}},
    {"size_corrected",
     "avgpool input=1x1x3 kernel=2 stride=4 padding=1 ceil=1 grad_output=1x1x2",
     Code::kBadShape,
     {"is 2, expected 1", "less 1"}},
    {"size_both",
     "avgpool input=1x1x3 kernel=2 stride=4 padding=1 ceil=1 grad_output=1x1x3 rules=infiniop",
     Code::kBadShape,
     {"is 3, expected 1 (or 2"}},
    {"batch",
     "avgpool input=2x3x4 kernel=2 grad_output=1x3x2",
     Code::kBadShape,
     {"grad_output.shape[0] is 1, expected 2"}},
    {"channels",
     "avgpool input=2x3x4 kernel=2 grad_output=2x4x2",
     Code::kBadShape,
     {"grad_output.shape[1] is 4, expected 3"}},
    {"grad_input",
     "avgpool input=2x3x4 kernel=2 grad_input=2x3x5",
     Code::kBadShape,
     {"grad_input.shape[2] is 5, expected 4"}},
    {"dtype_mix",
     "avgpool input=2x3x4:f16 kernel=2 grad_output=2x3x2:f32 grad_input=2x3x4:f32",
     Code::kBadDtype,
     {"input.dtype is f16, expected f32"}},
    {"dtype_8bit", "avgpool input=2x3x4 kernel=2 dtype=e4m3", Code::kBadDtype, {"e4m3", "f32, f16 or bf16"}},
    {"overlap",
     "avgpool input=2x3x4 kernel=2 grad_input=2x3x4@0x4x1",
     Code::kBadStrides,
     {"grad_input.strides"}},
    {"huge",
     "avgpool input=1x1x4 kernel=4611686018427387904 stride=4611686018427387904 padding=4611686018427387000",
     Code::kInvalidArgument,
     {"padding[0]"}},
    {"huge_stride",
     "avgpool input=1x1x4 kernel=1 stride=9223372036854775807 ceil=1 grad_output=1x1x1",
     Code::kBadShape,
     {"64 bits"}},
};
INSTANTIATE_TEST_SUITE_P(Rules, PoolRuleTest, testing::ValuesIn(kPoolRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(PoolRulesTest, BothCeilSizesAreLegalWhereTheInterfaceSaysSo) {
  const char* corrected =
      "avgpool input=1x1x3 kernel=2 stride=4 padding=1 ceil=1 grad_output=1x1x1 rules=infiniop";
  const char* plain =
      "avgpool input=1x1x3 kernel=2 stride=4 padding=1 ceil=1 grad_output=1x1x2 rules=infiniop";
  EXPECT_TRUE(judge_text(corrected).is_ok());
  EXPECT_TRUE(judge_text(plain).is_ok());
}

TEST(PoolRulesTest, OneEntryServesAllAxesAndAnEmptyStrideIsTheKernel) {
  const auto problem = judge_text("avgpool input=1x1x6x9 kernel=3");
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  const auto& pass = std::get<AvgPoolPass>(problem.value().passes.at(0));
  EXPECT_EQ(pass.axes[1].stride, 3);
  EXPECT_EQ(pass.axes[2].y, 3);
}

TEST(PoolRulesTest, TheBatchMayBeMissingWhereTheSpatialRankIsKnown) {
  const auto problem = judge_text("avgpool input=4x6x6 kernel=3x3 spatial=2");
  ASSERT_TRUE(problem.is_ok()) << problem.status().message();
  const auto& pass = std::get<AvgPoolPass>(problem.value().passes.at(0));
  EXPECT_EQ(pass.batch, 1);
  EXPECT_EQ(pass.channels, 4);
  EXPECT_EQ(pass.x.strides, (Strides5{0, 36, 0, 6, 1}));
}

}  // namespace
}  // namespace retrograd::problem
