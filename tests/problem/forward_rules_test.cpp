// SPDX-License-Identifier: Apache-2.0
// The rules that forward requests have of their own: the code, and the argument, value and rule in the
// message.
#include "rule_case.h"

namespace retrograd::problem {
namespace {

class ForwardRuleTest : public testing::TestWithParam<RuleCase> {};

TEST_P(ForwardRuleTest, IsExplained) { expect_explained(GetParam()); }

// clang-format off
const RuleCase kForwardRules[] = {
    {"output_size", "conv input=1x2x5 weight=2x2x3 output=1x2x4 forward=1", Code::kBadShape, {"output.shape[2] is 4, expected 3"}},
    {"output_channels", "conv input=1x2x5 weight=2x2x3 output=1x3x3 forward=1", Code::kBadShape, {"output.shape[1] is 3, expected 2"}},
    {"output_batch", "conv input=1x2x5 weight=2x2x3 output=2x2x3 forward=1", Code::kBadShape, {"output.shape[0] is 2, expected 1"}},
    {"output_overlaps", "conv input=1x2x5 weight=2x2x3 output=1x2x3@6x0x1 forward=1", Code::kBadStrides, {"output.strides is 6x0x1", "share an address"}},
    {"output_8bit", "conv input=1x2x5 weight=2x2x3 output=1x2x3:hif8 forward=1", Code::kBadDtype, {"output.dtype is hif8, expected f32, f16, bf16"}},
    {"output_other_8bit", "conv input=1x2x5 weight=2x2x3 output=1x2x3:e4m3 forward=1 dtype=hif8", Code::kBadDtype, {"output.dtype is e4m3", "or hif8"}},
    {"inputs_mix_8bit", "conv input=1x2x5:hif8 weight=2x2x3 forward=1", Code::kBadDtype, {"dtypes differ (input hif8, weight f32)", "expected hif8 for all"}},
    {"one_type", "conv input=1x2x5 weight=2x2x3 output=1x2x3:f16 forward=1 rules=infiniop", Code::kBadDtype, {"output.dtype is f16, expected f32: one type"}},
    {"bias_length", "conv input=1x2x5 weight=2x2x3 bias=3 forward=1", Code::kBadShape, {"bias.shape[0] is 3, expected 2"}},
    {"bias_rank", "conv input=1x2x5 weight=2x2x3 bias=2x1 forward=1", Code::kBadShape, {"bias.shape has rank 2", "expected 1"}},
    {"bias_type", "conv input=1x2x5 weight=2x2x3 bias=2:bf16 forward=1 dtype=f16", Code::kBadDtype, {"bias.dtype is bf16, expected f16, the type of the products, or f32"}},
    {"bias_type_mixed", "conv input=1x2x5:f16 weight=2x2x3 bias=2:f16 forward=1", Code::kBadDtype, {"bias.dtype is f16, expected f32"}},
    {"bias_one_type", "conv input=1x2x5 weight=2x2x3 bias=2:f32 forward=1 rules=infiniop dtype=f16", Code::kBadDtype, {"bias.dtype is f32, expected f16: one type"}},
    {"output_padding", "conv input=1x2x5 weight=2x2x3 stride=2 dilation=3 output_padding=3 transposed=1 forward=1 rules=aclnn", Code::kInvalidArgument, {"output_padding[0] is 3, expected 0 to 2", "the stride or the dilation"}},
    {"output_padding_plain", "conv input=1x2x5 weight=2x2x3 output_padding=1 forward=1", Code::kInvalidArgument, {"output_padding[0] is 1, expected 0"}},
    {"tbc_output", "conv_tbc input=5x1x2 weight=2x2x3 output=5x1x3 forward=1", Code::kBadShape, {"output.shape[0] is 5, expected 4"}},
    {"tbc_bias_type", "conv_tbc input=5x1x2 weight=2x2x3 bias=3:f16 forward=1", Code::kBadDtype, {"bias.dtype is f16, expected f32: the type of input"}},
    {"tbc_output_8bit", "conv_tbc input=5x1x2 weight=2x2x3 output=4x1x3:e4m3 forward=1", Code::kBadDtype, {"output.dtype is e4m3"}},
    {"pool_size", "avgpool input=1x1x7 kernel=2 output=1x1x4 forward=1", Code::kBadShape, {"output.shape[2] is 4, expected 3"}},
    {"pool_type", "avgpool input=1x1x7 kernel=2 output=1x1x3:f16 forward=1", Code::kBadDtype, {"output.dtype is f16, expected f32: the type of input"}},
    {"pool_8bit", "avgpool input=1x1x7 kernel=2 forward=1 dtype=hif8", Code::kBadDtype, {"output.dtype is hif8"}},
    {"pool_overlaps", "avgpool input=1x1x7 kernel=2 output=1x1x3@3x3x0 forward=1", Code::kBadStrides, {"output.strides is 3x3x0"}},
    {"product_output_type", "conv input=1x2x5 weight=2x2x3 output=1x2x3:f16 forward=1 product=a2", Code::kBadDtype, {"output.dtype is f16, expected f32 as input", "conv.output_type"}},
    {"product_8bit_bias", "conv input=1x2x5 weight=2x2x3 bias=2 forward=1 product=a3 dtype=hif8", Code::kBadDtype, {"conv.8bit"}},
    {"product_tbc_pad", "conv_tbc input=5x1x2 weight=2x2x3 pad=256 forward=1 math=1 product=a2", Code::kInvalidArgument, {"pad", "tbc.pad"}},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, ForwardRuleTest, testing::ValuesIn(kForwardRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

}  // namespace
}  // namespace retrograd::problem
