// SPDX-License-Identifier: Apache-2.0
// The rules of products for aclnnConvolution and aclnnConvTbc: those of the backward operators, read the
// other way round. product_limits_test.cpp has kernels and attributes.
#include "products.h"

namespace retrograd::acl_test {
namespace {

using Conv = ForwardConvCall;
using Tbc = ForwardTbcCall;

void of_type(auto& c, aclDataType type) {
  for (TensorArg* tensor : c.inputs()) tensor->dtype = type;
  c.output.dtype = type;
}

void with_math(auto& c, aclDataType type, int8_t math) {
  of_type(c, type);
  c.cube_math_type = math;
}

void make_1d(Conv& c) {
  c.input.shape = {2, 3, 8};
  c.weight.shape = {4, 3, 3};
  c.output.shape = {2, 4, 6};
  c.stride = c.dilation = {1};
  c.padding = c.output_padding = {0};
}

// clang-format off
const Case<Conv> kConv[] = {
    {"Float", [](Conv& c) { of_type(c, ACL_FLOAT); }, kNone, "", {}},
    {"Float16", [](Conv& c) { of_type(c, ACL_FLOAT16); }, kNone, "", {}},
    {"NoBias", [](Conv& c) { c.bias.null = true; }, kNone, "", {}},
    {"Bf16", [](Conv& c) { of_type(c, ACL_BF16); }, kOnlyTraining, "conv.bf16", {"output.dtype is bf16"}},
    {"HiFloat8", [](Conv& c) { of_type(c, ACL_HIFLOAT8), c.bias.dtype = ACL_FLOAT; }, kOlder, "conv.8bit", {"output.dtype is hif8"}},
    {"Float8E4M3", [](Conv& c) { of_type(c, ACL_FLOAT8_E4M3FN), c.bias.dtype = ACL_FLOAT; }, kOlder, "conv.8bit", {"output.dtype is e4m3"}},
    {"FloatMath0", [](Conv& c) { with_math(c, ACL_FLOAT, 0); }, kNone, "", {}},
    {"FloatMath1", [](Conv& c) { with_math(c, ACL_FLOAT, 1); }, kNone, "", {}},
    {"FloatMath2", [](Conv& c) { with_math(c, ACL_FLOAT, 2); }, kNone, "", {}},
    {"FloatMath3", [](Conv& c) { with_math(c, ACL_FLOAT, 3); }, kOnlyTraining, "conv.math_3", {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math3", [](Conv& c) { with_math(c, ACL_FLOAT16, 3); }, kNone, "", {}},
    {"OutputOfAnotherType", [](Conv& c) { c.output.dtype = ACL_FLOAT16; }, kAll, "conv.output_type", {"output.dtype is f16, expected f32 as input"}},
    {"WeightOfAnotherType", [](Conv& c) { c.weight.dtype = ACL_FLOAT16; }, kNone, "", {}},
    {"OutputOfAnotherFormat", [](Conv& c) { make_1d(c), c.output.format = ACL_FORMAT_NCL; }, kAll, "conv.formats", {"output.format is ncl, expected nd as input"}},
    {"WeightOfAnotherFormat", [](Conv& c) { make_1d(c), c.weight.format = ACL_FORMAT_NCL; }, kNone, "", {}},
    {"Transposed", [](Conv& c) { make_transposed(c); }, kNone, "", {}},
};
const Case<Tbc> kTbc[] = {
    {"Float", [](Tbc& c) { with_math(c, ACL_FLOAT, 1); }, kNone, "", {}},
    {"FloatMath0", [](Tbc& c) { with_math(c, ACL_FLOAT, 0); }, kOlder, "tbc.math_0", {"cubeMathType is 0 and the operands are f32"}},
    {"FloatMath2", [](Tbc& c) { with_math(c, ACL_FLOAT, 2); }, kNone, "", {}},
    {"FloatMath3", [](Tbc& c) { with_math(c, ACL_FLOAT, 3); }, kOlder, "tbc.math_3", {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math0", [](Tbc& c) { with_math(c, ACL_FLOAT16, 0); }, kNone, "", {}},
    {"Float16Math3", [](Tbc& c) { with_math(c, ACL_FLOAT16, 3); }, k910AndTraining, "tbc.math_3", {"cubeMathType is 3 and the operands are f16"}},
    {"Bf16", [](Tbc& c) { with_math(c, ACL_BF16, 1); }, kOnlyTraining, "tbc.bf16", {"output.dtype is bf16"}},
    {"OutputOfAnotherType", [](Tbc& c) { c.cube_math_type = 1, c.output.dtype = ACL_FLOAT16; }, kAll, "tbc.output_type", {"output.dtype is f16, expected f32 as self"}},
    {"KernelOf256", [](Tbc& c) { c.cube_math_type = 1, c.weight.shape[0] = 256, c.self.shape[0] = 300, c.output.shape[0] = 47; }, kOnly910, "tbc.kernel", {"weight.shape[0] is 256, expected 1 to 255"}},
    {"KernelOf255", [](Tbc& c) { c.cube_math_type = 1, c.weight.shape[0] = 255, c.self.shape[0] = 300, c.output.shape[0] = 48; }, kNone, "", {}},
    {"PadOf255", [](Tbc& c) { c.cube_math_type = 1, c.pad = 255, c.output.shape[0] = 513; }, kNone, "", {}},
    {"PadOf256", [](Tbc& c) { c.cube_math_type = 1, c.pad = 256, c.output.shape[0] = 515; }, kAll, "tbc.pad", {"pad is 256, expected 0 to 255"}},
};
// clang-format on

class ForwardConvProducts : public ::testing::TestWithParam<Case<Conv>> {};
class ForwardTbcProducts : public ::testing::TestWithParam<Case<Tbc>> {};

TEST_P(ForwardConvProducts, RefuseWhatTheirTableSays) {
  Conv call;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

TEST_P(ForwardTbcProducts, RefuseWhatTheirTableSays) {
  Tbc call;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

INSTANTIATE_TEST_SUITE_P(Acl, ForwardConvProducts, ::testing::ValuesIn(kConv), name_of<Conv>);
INSTANTIATE_TEST_SUITE_P(Acl, ForwardTbcProducts, ::testing::ValuesIn(kTbc), name_of<Tbc>);

// Mode 2 on BF16: nobody takes it, with rules or without.
TEST(ForwardProducts, RefuseMode2OfBf16) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    const bool training = product == "training";
    Tbc tbc;
    with_math(tbc, ACL_BF16, 2);
    EXPECT_TRUE(refused(tbc.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {"product " + product, training ? "rule tbc.bf16" : "rule tbc.math_2: BF16"}));
    Conv conv;
    with_math(conv, ACL_BF16, 2);
    EXPECT_TRUE(refused(conv.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {training ? "rule conv.bf16" : "cubeMathType is 2"}));
  }
}

}  // namespace
}  // namespace retrograd::acl_test
