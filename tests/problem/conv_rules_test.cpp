// SPDX-License-Identifier: Apache-2.0
// Every rule a convolution request can break: the code, and the argument, value and rule in the message.
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::problem {
namespace {

struct RuleCase {
  const char* name;
  const char* text;
  Code code;
  std::vector<std::string> parts;
};

void PrintTo(const RuleCase& rule, std::ostream* out) { *out << rule.text; }

Result<Problem> judge(const char* text) {
  auto request = parse_request(text);
  if (!request.is_ok()) return request.status();
  return problem::judge(request.value());
}

class ConvRuleTest : public testing::TestWithParam<RuleCase> {};

TEST_P(ConvRuleTest, IsExplained) {
  const RuleCase& rule = GetParam();
  const auto problem = judge(rule.text);
  ASSERT_FALSE(problem.is_ok()) << "accepted: " << rule.text;
  EXPECT_EQ(problem.status().code(), rule.code) << problem.status().message();
  for (const std::string& part : rule.parts)
    EXPECT_NE(problem.status().message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << problem.status().message();
}

const RuleCase kConvRules[] = {
    {"rank_2", "conv input=3x3 weight=3x3", Code::kBadShape, {"input.shape has rank 2 (3x3)", "3, 4 or 5"}},
    {"rank_6", "conv input=1x1x1x1x1x1 weight=1x1x1x1x1x1", Code::kBadShape, {"rank 6", "3, 4 or 5"}},
    {"rank_0", "conv input=scalar weight=scalar", Code::kBadShape, {"rank 0"}},
    {"weight_rank", "conv input=1x2x5x5 weight=2x2x3", Code::kBadShape, {"weight.shape has rank 3", "expected 4"}},
    {"grad_output_rank", "conv input=1x2x5 weight=2x2x3 grad_output=1x2x3x1", Code::kBadShape,
     {"grad_output.shape has rank 4", "expected 3"}},
    {"negative_size", "conv input=1x-2x5x5 weight=2x2x3x3 grad_output=1x2x3x3", Code::kBadShape,
     {"input.shape[1] is -2"}},
    {"overflow", "conv input=4294967296x4294967296x4294967296 weight=1x1x1 grad_output=1x1x1", Code::kBadShape,
     {"input.shape", "64 bits"}},
    {"stride_length", "conv input=1x2x5x5 weight=2x2x3x3 stride=1 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"stride has 1 entries, expected 2", "2-D"}},
    {"stride_empty", "conv input=1x2x5 weight=2x2x3 stride=none grad_output=1x2x3", Code::kInvalidArgument,
     {"stride has 0 entries, expected 1"}},
    {"padding_length", "conv input=1x2x5x5 weight=2x2x3x3 padding=1x1x1 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"padding has 3 entries, expected 2 or 4"}},
    {"padding_pairs_3d_aclnn", "conv input=1x1x3x3x3 weight=1x1x1x1x1 padding=0x0x0x0x0x0 rules=aclnn "
     "grad_output=1x1x3x3x3", Code::kInvalidArgument, {"padding has 6 entries, expected 3"}},
    {"dilation_length", "conv input=1x2x5x5 weight=2x2x3x3 dilation=1x1x1 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"dilation has 3 entries"}},
    {"output_padding_length", "conv input=1x2x5x5 weight=2x2x3x3 output_padding=0x0x0 grad_output=1x2x3x3",
     Code::kInvalidArgument, {"output_padding has 3 entries, expected 2 or 4"}},
    {"stride_zero", "conv input=1x2x5x5 weight=2x2x3x3 stride=1x0 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"stride[1] is 0", "at least 1"}},
    {"stride_negative", "conv input=1x2x5 weight=2x2x3 stride=-1 grad_output=1x2x3", Code::kInvalidArgument,
     {"stride[0] is -1"}},
    {"padding_negative", "conv input=1x2x5x5 weight=2x2x3x3 padding=0x-1 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"padding[1] is -1", "at least 0"}},
    {"dilation_zero", "conv input=1x2x5x5 weight=2x2x3x3 dilation=0x1 grad_output=1x2x3x3", Code::kInvalidArgument,
     {"dilation[0] is 0", "at least 1"}},
    {"plain_output_padding", "conv input=1x2x5x5 weight=2x2x3x3 stride=2x2 output_padding=0x1", Code::kInvalidArgument,
     {"output_padding[1] is 1", "expected 0", "not transposed"}},
    {"output_padding_range", "conv input=1x2x5x5 weight=2x2x3x3 stride=2x2 output_padding=2x0 transposed=1",
     Code::kInvalidArgument, {"output_padding[0] is 2", "0 to 1"}},
    {"output_padding_negative", "conv input=1x2x5x5 weight=2x2x3x3 stride=2x2 output_padding=-1x0 transposed=1",
     Code::kInvalidArgument, {"output_padding[0] is -1"}},
    {"groups_zero", "conv input=1x2x5x5 weight=2x2x3x3 groups=0", Code::kInvalidArgument, {"groups is 0"}},
    {"groups_range", "conv input=1x65536x1 weight=65536x1x1 groups=65536 rules=aclnn", Code::kInvalidArgument,
     {"groups is 65536, expected 1 to 65535"}},
    {"groups_channels", "conv input=1x4x5x5 weight=2x2x3x3 groups=1", Code::kInvalidArgument,
     {"groups is 1", "weight.shape[1] (2)", "input.shape[1], which is 4", "groups = 2 would fit"}},
    {"groups_outputs", "conv input=1x4x5x5 weight=3x2x3x3 groups=2", Code::kBadShape,
     {"weight.shape[0] is 3", "multiple of groups = 2"}},
    {"no_output_channels", "conv input=1x2x5x5 weight=0x2x3x3", Code::kBadShape, {"weight.shape[0] is 0", "at least 1"}},
    {"grad_output_channels", "conv input=1x2x5x5 weight=4x2x3x3 grad_output=1x3x3x3", Code::kBadShape,
     {"grad_output.shape[1] is 3, expected 4"}},
    {"batch", "conv input=2x2x5x5 weight=4x2x3x3 grad_output=3x4x3x3", Code::kBadShape,
     {"grad_output.shape[0] is 3, expected 2"}},
    {"transposed_channels", "conv input=1x3x5x5 weight=4x2x3x3 transposed=1", Code::kBadShape,
     {"weight.shape[0] is 4, expected 3"}},
    {"transposed_groups", "conv input=1x3x5x5 weight=3x2x3x3 groups=2 transposed=1", Code::kBadShape,
     {"weight.shape[0] is 3", "multiple of groups = 2"}},
    {"transposed_outputs", "conv input=1x4x5x5 weight=4x2x3x3 groups=2 transposed=1 grad_output=1x3x7x7",
     Code::kInvalidArgument, {"groups is 2", "grad_output.shape[1], which is 3"}},
    {"transposed_no_input_channels", "conv input=0x0x5x5 weight=0x2x3x3 transposed=1", Code::kBadShape,
     {"weight.shape[0] is 0", "at least 1"}},
    {"transposed_no_output_channels", "conv input=1x2x5x5 weight=2x0x3x3 transposed=1", Code::kBadShape,
     {"weight.shape[1] is 0", "only an empty batch"}},
    {"spatial", "conv input=1x2x224x224 weight=4x2x3x5 stride=2x2 padding=1x1 grad_output=1x4x112x112", Code::kBadShape,
     {"grad_output.shape[3] is 112, expected 111 = floor((224 + 1 + 1 - 1*(5-1) - 1)/2) + 1 (input W 224, padding 1+1, "
      "dilation 1, kernel 5, stride 2)"}},
    {"spatial_1d", "conv input=1x2x9 weight=4x2x3 grad_output=1x4x8", Code::kBadShape,
     {"grad_output.shape[2] is 8, expected 7", "input L 9"}},
    {"spatial_3d", "conv input=1x2x9x9x9 weight=4x2x3x3x3 grad_output=1x4x6x7x7", Code::kBadShape,
     {"grad_output.shape[2] is 6, expected 7", "input D 9"}},
    {"kernel_too_large", "conv input=1x2x4x4 weight=4x2x7x1 padding=1x0 grad_output=1x4x0x4", Code::kBadShape,
     {"does not fit", "grad_output.shape[2] would be 0", "kernel 7"}},
    {"kernel_far_too_large", "conv input=0x2x4x4 weight=4x2x9x1 grad_output=0x4x0x4", Code::kBadShape,
     {"does not fit", "would be -4"}},
    {"transposed_spatial", "conv input=1x2x4x4 weight=2x3x3x3 stride=2x2 padding=1x1 output_padding=1x0 transposed=1 "
     "grad_output=1x3x8x8", Code::kBadShape,
     {"grad_output.shape[3] is 8, expected 7 = (4 - 1)*2 - 1 - 1 + 1*(3-1) + 1 + 0 + 0", "transposed"}},
    {"transposed_too_much_padding", "conv input=1x2x2 weight=2x3x1 padding=3 transposed=1 grad_output=1x3x0",
     Code::kBadShape, {"would be -4", "at least 1"}},
    {"empty_space", "conv input=1x2x0x4 weight=4x2x1x1 grad_output=1x4x0x4", Code::kBadShape,
     {"input.shape[2] is 0", "only an empty batch or no channels"}},
    {"empty_kernel", "conv input=1x2x4x4 weight=4x2x0x1 grad_output=1x4x5x4", Code::kBadShape, {"weight.shape[2] is 0"}},
    {"huge_padding", "conv input=1x1x4 weight=1x1x1 padding=4611686018427387904 grad_output=1x1x4", Code::kBadShape,
     {"64 bits", "padding 4611686018427387904"}},
    {"huge_dilation", "conv input=1x1x4 weight=1x1x3 dilation=9223372036854775807 grad_output=1x1x4", Code::kBadShape,
     {"64 bits"}},
    {"mixed_8bit", "conv input=1x1x4:hif8 weight=1x1x1:f16 grad_output=1x1x4:hif8", Code::kBadDtype,
     {"grad_output hif8, input hif8, weight f16", "8-bit types do not mix"}},
    {"two_8bit", "conv input=1x1x4:hif8 weight=1x1x1:e4m3 grad_output=1x1x4:e4m3", Code::kBadDtype, {"do not mix"}},
    {"one_dtype", "conv input=1x1x4 weight=1x1x1:f16 rules=infiniop", Code::kBadDtype,
     {"weight f16", "one type for all"}},
    {"one_dtype_result", "conv input=1x1x4 weight=1x1x1 grad_bias=1:f16 rules=infiniop", Code::kBadDtype,
     {"grad_bias.dtype is f16, expected f32"}},
    {"grad_input_8bit", "conv input=1x1x4 weight=1x1x1 grad_input=1x1x4:e4m3", Code::kBadDtype,
     {"grad_input.dtype is e4m3", "f32, f16, bf16"}},
    {"grad_input_other_8bit", "conv input=1x1x4 weight=1x1x1 grad_input=1x1x4:hif8 grad_weight=1x1x1:f32 grad_bias=1:f32 "
     "dtype=e4m3", Code::kBadDtype, {"grad_input.dtype is hif8", "or e4m3"}},
    {"grad_weight_e4m3", "conv input=1x1x4 weight=1x1x1 grad_bias=1:f32 dtype=e4m3", Code::kBadDtype,
     {"grad_weight.dtype is e4m3"}},
    {"grad_bias_8bit", "conv input=1x1x4 weight=1x1x1 dtype=hif8", Code::kBadDtype, {"grad_bias.dtype is hif8"}},
    {"math_range", "conv input=1x1x4 weight=1x1x1 math=4", Code::kInvalidArgument, {"math is 4", "3 (USE_HF32)"}},
    {"math_negative", "conv input=1x1x4 weight=1x1x1 math=-1", Code::kInvalidArgument, {"math is -1"}},
    {"math_bf16", "conv input=1x1x4 weight=1x1x1 math=2 dtype=bf16", Code::kBadDtype, {"math is 2", "bf16"}},
    {"grad_input_shape", "conv input=1x2x5x5 weight=2x2x3x3 grad_input=1x2x5x4", Code::kBadShape,
     {"grad_input.shape[3] is 4, expected 5"}},
    {"grad_weight_shape", "conv input=1x2x5x5 weight=2x2x3x3 grad_weight=2x2x9", Code::kBadShape,
     {"grad_weight.shape has rank 3"}},
    {"grad_bias_shape", "conv input=1x2x5x5 weight=2x2x3x3 grad_bias=3", Code::kBadShape,
     {"grad_bias.shape[0] is 3, expected 2"}},
    {"grad_input_overlap", "conv input=1x2x5 weight=2x2x3 grad_input=1x2x5@0x0x1", Code::kBadStrides,
     {"grad_input.strides is 0x0x1", "share an address"}},
    {"tbc_rank", "conv_tbc input=5x1x2x1 weight=1x2x2", Code::kBadShape, {"grad_output.shape has rank 0"}},
    {"tbc_bias_rank", "conv_tbc input=5x1x2 weight=1x2x2 bias=2x1", Code::kBadShape, {"bias.shape has rank 2"}},
    {"tbc_channels", "conv_tbc input=5x1x3 weight=1x2x2 grad_output=5x1x2", Code::kBadShape,
     {"input.shape[2] is 3, expected 2"}},
    {"tbc_bias", "conv_tbc input=5x1x2 weight=1x2x2 bias=3", Code::kBadShape, {"bias.shape[0] is 3, expected 2"}},
    {"tbc_time", "conv_tbc input=5x1x2 weight=2x2x2 grad_output=5x1x2", Code::kBadShape,
     {"grad_output.shape[0] is 5, expected 4 = 5 + 2*0 - 2 + 1"}},
    {"tbc_batch", "conv_tbc input=5x1x2 weight=1x2x2 grad_output=5x3x2", Code::kBadShape,
     {"grad_output.shape[1] is 3, expected 1"}},
    {"tbc_kernel", "conv_tbc input=2x1x2 weight=9x2x2 grad_output=0x1x2", Code::kBadShape, {"expected -6"}},
    {"tbc_pad", "conv_tbc input=5x1x2 weight=1x2x2 pad=-1 grad_output=5x1x2", Code::kInvalidArgument, {"padding is -1"}},
    {"tbc_pad_large", "conv_tbc input=5x1x2 weight=1x2x2 pad=2147483648 grad_output=5x1x2", Code::kInvalidArgument,
     {"padding is 2147483648", "2147483647"}},
    {"tbc_dtype", "conv_tbc input=5x1x2 weight=1x2x2:f16", Code::kBadDtype, {"weight.dtype is f16, expected f32"}},
    {"tbc_bias_dtype", "conv_tbc input=5x1x2 weight=1x2x2 bias=2:bf16", Code::kBadDtype, {"bias.dtype is bf16"}},
    {"tbc_8bit", "conv_tbc input=5x1x2 weight=1x2x2 dtype=hif8", Code::kBadDtype, {"hif8", "f32, f16 or bf16"}},
    {"tbc_result", "conv_tbc input=5x1x2 weight=1x2x2 grad_weight=1x2x3", Code::kBadShape,
     {"grad_weight.shape[2] is 3, expected 2"}},
    {"tbc_overlap", "conv_tbc input=5x1x2 weight=1x2x2 grad_input=5x1x2@1x1x1", Code::kBadStrides, {"grad_input"}},
    {"tbc_math", "conv_tbc input=5x1x2 weight=1x2x2 math=9", Code::kInvalidArgument, {"math is 9"}},
};
INSTANTIATE_TEST_SUITE_P(Rules, ConvRuleTest, testing::ValuesIn(kConvRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(ConvRulesTest, Mode3On16BitTypesIsLegalWithAWarning) {
  const auto problem = judge("conv input=1x1x4 weight=1x1x1 math=3 dtype=f16");
  ASSERT_TRUE(problem.is_ok());
  ASSERT_EQ(problem.value().warnings.size(), 1u);
  EXPECT_NE(problem.value().warnings[0].find("f16"), std::string::npos);
  EXPECT_TRUE(judge("conv input=1x1x4 weight=1x1x1 math=3").value().warnings.empty());
}

TEST(ConvRulesTest, PromotionMeetsInFp32) {
  const auto promoted = [](const char* text) { return promote(std::get<ConvRequest>(parse_request(text).value())); };
  EXPECT_EQ(promoted("conv input=1x1x4:f16 weight=1x1x1:f16 grad_output=1x1x4:f16").value(), DType::kF16);
  EXPECT_EQ(promoted("conv input=1x1x4:f16 weight=1x1x1:bf16 grad_output=1x1x4:f16").value(), DType::kF32);
  EXPECT_EQ(promoted("conv input=1x1x4:f32 weight=1x1x1:bf16 grad_output=1x1x4:f32").value(), DType::kF32);
  EXPECT_EQ(promoted("conv input=1x1x4:e4m3 weight=1x1x1:e4m3 grad_output=1x1x4:e4m3").value(), DType::kE4M3);
}

}  // namespace
}  // namespace retrograd::problem
