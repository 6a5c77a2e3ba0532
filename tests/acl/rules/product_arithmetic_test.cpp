// SPDX-License-Identifier: Apache-2.0
// What a product computes with cubeMathType 1, the name it answers with, and operators it has no rules for.
#include "../run_call.h"
#include "products.h"

namespace retrograd::acl_test {
namespace {

// 1 + 2^-12 is half a step of HF32 above 1, 1 + 2^-11 half a step of FP16: the first rounds
// away from zero in HF32 and to 1 in FP16, the second stays in HF32 and becomes 1, which is even, in FP16.
constexpr float kHalfHf32 = 1.0f + 0x1p-12f, kHalfF16 = 1.0f + 0x1p-11f;

std::vector<Values> products_of(const Rules& rules, float x, int8_t math) {
  ConvCall call;
  for (TensorArg* tensor :
       {&call.grad_output, &call.input, &call.weight, &call.grad_input, &call.grad_weight})
    tensor->shape = {1, 1, 1};
  call.grad_bias.shape = {1};
  call.bias_sizes = call.stride = call.dilation = {1};
  call.padding = call.output_padding = {0};
  call.cube_math_type = math;
  return run(call, {{x}, {4.0f}, {2.0f}}, rules.stream());
}

TEST(ProductArithmetic, OfMode1IsTheProductsOwn) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    const float hf32 = product == "training" ? 1.0f : kHalfF16,
                half = product == "training" ? 1.0f : kHalfF16;
    const auto first = products_of(rules, kHalfHf32, 1), second = products_of(rules, kHalfF16, 1);
    EXPECT_EQ(first[0], Values{2 * hf32});
    EXPECT_EQ(first[1], Values{4 * hf32});
    EXPECT_EQ(first[2], Values{kHalfHf32}) << "the bias gradient sums what was given";
    EXPECT_EQ(second[0], Values{2 * half});
    EXPECT_EQ(second[1], Values{4 * half});
    EXPECT_EQ(products_of(rules, kHalfHf32, 0)[0], Values{2 * kHalfHf32}) << "mode 0 keeps the operands";
  }
}

TEST(ProductArithmetic, OfMode1IsExactWithoutRules) {
  const Rules without("");
  if (std::string(aclrtGetSocName()) != "Retrograd-CPU") GTEST_SKIP() << "a GPU may use TF32";
  EXPECT_EQ(products_of(without, kHalfHf32, 1)[0], Values{2 * kHalfHf32});
}

TEST(ProductArithmetic, OfTbc) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    TbcCall call;
    call.self.shape = call.input.shape = call.grad_input.shape = {1, 1, 1};
    call.weight.shape = call.grad_weight.shape = {1, 1, 1};
    call.bias.shape = call.grad_bias.shape = {1};
    call.pad = 0;
    call.cube_math_type = 1;
    const auto out = run(call, {{kHalfHf32}, {4.0f}, {2.0f}}, rules.stream());
    const float rounded = product == "training" ? 1.0f : kHalfF16;
    EXPECT_EQ(out[0], Values{2 * rounded});
    EXPECT_EQ(out[1], Values{4 * rounded});
    EXPECT_EQ(out[2], Values{kHalfHf32});
  }
}

TEST(ProductArithmetic, OfForwardOperators) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    const float rounded = product == "training" ? 1.0f : kHalfF16;
    ForwardConvCall conv;
    for (TensorArg* tensor : {&conv.input, &conv.weight, &conv.output}) tensor->shape = {1, 1, 1};
    conv.bias.shape = {1};
    conv.stride = conv.dilation = {1};
    conv.padding = conv.output_padding = {0};
    conv.cube_math_type = 1;
    const Values with_bias{2 * rounded + kHalfHf32};
    EXPECT_EQ(run(conv, {{kHalfHf32}, {2.0f}, {kHalfHf32}}, rules.stream())[0], with_bias)
        << "the bias is no operand of a product";
    ForwardTbcCall tbc;
    for (TensorArg* tensor : {&tbc.self, &tbc.weight, &tbc.output}) tensor->shape = {1, 1, 1};
    tbc.bias.shape = {1};
    tbc.pad = 0;
    tbc.cube_math_type = 1;
    EXPECT_EQ(run(tbc, {{kHalfHf32}, {2.0f}, {kHalfHf32}}, rules.stream())[0], with_bias);
  }
}

TEST(Products, HaveNamesOfTheirChips) {
  const std::pair<const char*, const char*> names[] = {
      {"a2", "Ascend910B"}, {"a3", "Ascend910_93"}, {"910_95", "Ascend910_95"}, {"training", "Ascend910A"}};
  for (const auto& [product, name] : names) {
    const Rules rules(product);
    EXPECT_EQ(std::string(aclrtGetSocName()).rfind(name, 0), 0u) << aclrtGetSocName();
  }
  EXPECT_EQ(std::string(aclrtGetSocName()).rfind("Retrograd-", 0), 0u) << "finalize forgets the file";
}

// Pooling has no rules of products.
TEST(Products, LeavePoolingAlone) {
  for (const std::string product : kProducts) {
    const Rules rules(product);
    Pool2dCall call;
    for (TensorArg* tensor : {&call.grad_output, &call.self, &call.grad_input}) tensor->dtype = ACL_BF16;
    expect_taken(call);
    ForwardPool2dCall forward;
    for (TensorArg* tensor : {&forward.self, &forward.out}) tensor->dtype = ACL_BF16;
    expect_taken(forward);
  }
}

}  // namespace
}  // namespace retrograd::acl_test
