// SPDX-License-Identifier: Apache-2.0
// The rules of products for aclnnConvTbcBackward. The call is legal for every product with cubeMathType 1.
#include "products.h"

namespace retrograd::acl_test {
namespace {

void of_type(TbcCall& c, aclDataType type) {
  for (TensorArg* tensor : c.inputs()) tensor->dtype = type;
  for (TensorArg* tensor : c.outputs()) tensor->dtype = type;
}

void with_math(TbcCall& c, aclDataType type, int8_t math) {
  of_type(c, type);
  c.cube_math_type = math;
}

void with_kernel(TbcCall& c, int64_t k) {
  c.weight.shape[0] = c.grad_weight.shape[0] = k;
  c.input.shape[0] = c.grad_input.shape[0] = 300;
  c.self.shape[0] = 300 + 2 - k + 1;
}

void with_pad(TbcCall& c, int64_t pad) {
  c.pad = pad;
  c.self.shape[0] = 6 + 2 * pad - 4 + 1;
}

using TbcCase = Case<TbcCall>;
const TbcCase kTbcCases[] = {
    {"Float", [](TbcCall&) {}, kNone, "", {}},
    {"Float16", [](TbcCall& c) { of_type(c, ACL_FLOAT16); }, kNone, "", {}},
    {"Bf16", [](TbcCall& c) { of_type(c, ACL_BF16); }, kOnlyTraining, "tbc.bf16", {"self.dtype is bf16"}},
    {"GradWeightOfHiFloat8",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_HIFLOAT8; },
     kOlder,
     "tbc.8bit",
     {"gradWeight.dtype is hif8"}},
    {"GradWeightOfE4M3",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_FLOAT8_E4M3FN; },
     kOlder,
     "tbc.8bit",
     {"gradWeight.dtype is e4m3"}},
    {"FloatMath0",
     [](TbcCall& c) { with_math(c, ACL_FLOAT, 0); },
     kOlder,
     "tbc.math_0",
     {"cubeMathType is 0 and the operands are f32"}},
    {"FloatMath1", [](TbcCall& c) { with_math(c, ACL_FLOAT, 1); }, kNone, "", {}},
    {"FloatMath2", [](TbcCall& c) { with_math(c, ACL_FLOAT, 2); }, kNone, "", {}},
    {"FloatMath3",
     [](TbcCall& c) { with_math(c, ACL_FLOAT, 3); },
     kOlder,
     "tbc.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math0", [](TbcCall& c) { with_math(c, ACL_FLOAT16, 0); }, kNone, "", {}},
    {"Float16Math2", [](TbcCall& c) { with_math(c, ACL_FLOAT16, 2); }, kNone, "", {}},
    {"Float16Math3",
     [](TbcCall& c) { with_math(c, ACL_FLOAT16, 3); },
     k910AndTraining,
     "tbc.math_3",
     {"cubeMathType is 3 and the operands are f16"}},
    {"Bf16Math0", [](TbcCall& c) { with_math(c, ACL_BF16, 0); }, kOnlyTraining, "tbc.bf16", {"bf16"}},
    {"Bf16Math1", [](TbcCall& c) { with_math(c, ACL_BF16, 1); }, kOnlyTraining, "tbc.bf16", {"bf16"}},
    {"KernelOf1", [](TbcCall& c) { with_kernel(c, 1); }, kNone, "", {}},
    {"KernelOf255", [](TbcCall& c) { with_kernel(c, 255); }, kNone, "", {}},
    {"KernelOf256",
     [](TbcCall& c) { with_kernel(c, 256); },
     kOnly910,
     "tbc.kernel",
     {"weight.shape[0] is 256, expected 1 to 255"}},
    {"KernelOf0",
     [](TbcCall& c) { with_kernel(c, 0); },
     kOnly910,
     "tbc.kernel",
     {"weight.shape[0] is 0, expected 1 to 255"}},
    {"PadOf0", [](TbcCall& c) { with_pad(c, 0); }, kNone, "", {}},
    {"PadOf255", [](TbcCall& c) { with_pad(c, 255); }, kNone, "", {}},
    {"PadOf256", [](TbcCall& c) { with_pad(c, 256); }, kAll, "tbc.pad", {"pad is 256, expected 0 to 255"}},
    {"GradInputOfAnotherType",
     [](TbcCall& c) { c.grad_input.dtype = ACL_FLOAT16; },
     kAll,
     "tbc.result_types",
     {"gradInput.dtype is f16, expected f32 as input"}},
    {"GradBiasOfAnotherType",
     [](TbcCall& c) { c.grad_bias.dtype = ACL_FLOAT16; },
     kAll,
     "tbc.result_types",
     {"gradBias.dtype is f16, expected f32 as bias"}},
    {"GradWeightOfAnotherType",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_FLOAT16; },
     kOlder,
     "tbc.result_types",
     {"gradWeight.dtype is f16, expected f32 as weight"}},
};

class TbcProducts : public ::testing::TestWithParam<TbcCase> {};

TEST_P(TbcProducts, RefuseWhatTheirTableSays) {
  TbcCall call;
  call.cube_math_type = 1;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

INSTANTIATE_TEST_SUITE_P(Acl, TbcProducts, ::testing::ValuesIn(kTbcCases), name_of<TbcCall>);

// Mode 3 on BF16, which training refuses for its type, and mode 2 on BF16, which nobody takes, with rules or
// without.
TEST(Products, RefuseModesOfBf16) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    TbcCall call;
    with_math(call, ACL_BF16, 2);
    const bool training = product == "training";
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {"product " + product, training ? "rule tbc.bf16" : "rule tbc.math_2: BF16"}));
    with_math(call, ACL_BF16, 3);
    if (has(kA2A3, product)) {
      expect_taken(call);
    } else {
      EXPECT_TRUE(
          refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {"product " + product, training ? "rule tbc.bf16" : "rule tbc.math_3: only FLOAT"}));
    }
  }
  const Rules without("");
  TbcCall call;
  with_math(call, ACL_BF16, 2);
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"cubeMathType is 2 (USE_FP16)"}));
}

// 8 bits are for gradWeight at most.
TEST(Products, RefuseTbcTensorsOf8Bits) {
  for (const std::string product : kProducts) {
    const Rules rules(product);
    for (const aclDataType type : {ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN})
      for (size_t which = 0; which < 6; ++which) {
        TbcCall call;
        call.cube_math_type = 1;
        TensorArg* const others[] = {&call.self, &call.input,      &call.weight,
                                     &call.bias, &call.grad_input, &call.grad_bias};
        others[which]->dtype = type;
        EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {".dtype is "})) << product << which;
      }
  }
}

}  // namespace
}  // namespace retrograd::acl_test
