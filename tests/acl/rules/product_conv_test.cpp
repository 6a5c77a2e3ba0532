// SPDX-License-Identifier: Apache-2.0
// The other rules of products for aclnnConvolutionBackward: types, modes, biasSizes, formats, nulls.
#include "products.h"

namespace retrograd::acl_test {
namespace {

void of_type(ConvCall& c, aclDataType type) {
  const bool wide = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
  for (TensorArg* tensor : c.inputs()) tensor->dtype = type;
  c.grad_input.dtype = type;
  c.grad_weight.dtype = c.grad_bias.dtype = wide ? type : ACL_FLOAT;
}

using ConvCase = Case<ConvCall>;
const ConvCase kConvCases[] = {
    {"Float", [](ConvCall& c) { of_type(c, ACL_FLOAT); }, kNone, "", {}},
    {"Float16", [](ConvCall& c) { of_type(c, ACL_FLOAT16); }, kNone, "", {}},
    {"Bf16",
     [](ConvCall& c) { of_type(c, ACL_BF16); },
     kOnlyTraining,
     "conv.bf16",
     {"gradOutput.dtype is bf16"}},
    {"Bf16Result",
     [](ConvCall& c) { c.grad_weight.dtype = ACL_BF16; },
     kOnlyTraining,
     "conv.bf16",
     {"gradWeight.dtype is bf16"}},
    {"HiFloat8",
     [](ConvCall& c) { of_type(c, ACL_HIFLOAT8); },
     kOlder,
     "conv.8bit",
     {"gradOutput.dtype is hif8"}},
    {"HiFloat8AllOfIt",
     [](ConvCall& c) {
       of_type(c, ACL_HIFLOAT8);
       c.grad_weight.dtype = ACL_HIFLOAT8;
     },
     kOlder,
     "conv.8bit",
     {"hif8"}},
    {"Float8E4M3",
     [](ConvCall& c) { of_type(c, ACL_FLOAT8_E4M3FN); },
     kOlder,
     "conv.8bit",
     {"gradOutput.dtype is e4m3"}},
    {"FloatMath0", [](ConvCall& c) { c.cube_math_type = 0; }, kNone, "", {}},
    {"FloatMath1", [](ConvCall& c) { c.cube_math_type = 1; }, kNone, "", {}},
    {"FloatMath2", [](ConvCall& c) { c.cube_math_type = 2; }, kNone, "", {}},
    {"FloatMath3",
     [](ConvCall& c) { c.cube_math_type = 3; },
     kOnlyTraining,
     "conv.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"MixedMath3",
     [](ConvCall& c) {
       c.weight.dtype = ACL_FLOAT16;
       c.cube_math_type = 3;
     },
     kOnlyTraining,
     "conv.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math0", [](ConvCall& c) { of_type(c, ACL_FLOAT16), c.cube_math_type = 0; }, kNone, "", {}},
    {"Float16Math3", [](ConvCall& c) { of_type(c, ACL_FLOAT16), c.cube_math_type = 3; }, kNone, "", {}},
    {"BiasSizesOfAnotherSize",
     [](ConvCall& c) { c.bias_sizes = {5}; },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [5], expected [4]", "bias_sizes=5"}},
    {"BiasSizesOfTwo",
     [](ConvCall& c) {
       c.bias_sizes = {4, 4};
     },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [4, 4], expected [4]"}},
    {"BiasSizesEmpty",
     [](ConvCall& c) { c.bias_sizes = ArrayArg(Sizes{}); },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [], expected [4]", "bias_sizes=none"}},
    {"BiasSizesNobodyAskedFor",
     [](ConvCall& c) {
       c.bias_sizes = {5};
       c.mask.values = {1, 1, 0};
     },
     kNone,
     "",
     {}},
    {"BiasSizesTransposed", [](ConvCall& c) { make_transposed(c); }, kNone, "", {}},
    {"BiasSizesTransposedOfTheInput",
     [](ConvCall& c) {
       make_transposed(c);
       c.bias_sizes = {3};
     },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [3], expected [5]"}},
    {"GradInputOfAnotherType",
     [](ConvCall& c) { c.grad_input.dtype = ACL_FLOAT16; },
     kAll,
     "conv.grad_input_type",
     {"gradInput.dtype is f16, expected f32 as input"}},
    {"GradInputOfAnotherTypeNobodyAskedFor",
     [](ConvCall& c) {
       c.grad_input.dtype = ACL_FLOAT16;
       c.mask.values = {0, 1, 1};
     },
     kNone,
     "",
     {}},
    {"GradBiasOfAnotherType",
     [](ConvCall& c) { c.grad_bias.dtype = ACL_FLOAT16; },
     kAll,
     "conv.grad_bias_type",
     {"gradBias.dtype is f16, expected f32 as gradOutput"}},
    {"GradBiasOfGradOutputsType",
     [](ConvCall& c) { c.grad_bias.dtype = c.grad_output.dtype = ACL_FLOAT16; },
     kNone,
     "",
     {}},
    {"GradWeightOfAnotherType", [](ConvCall& c) { c.grad_weight.dtype = ACL_FLOAT16; }, kNone, "", {}},
    {"FormatsOfTheirOwnForTheWeights",
     [](ConvCall& c) { make_1d(c), c.weight.format = c.grad_weight.format = ACL_FORMAT_NCL; },
     kNone,
     "",
     {}},
    {"GradOutputOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_output.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradOutput.format is ncl, expected nd as input", "formats=ncl,nd,nd,nd,nd"}},
    {"GradInputOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_input.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradInput.format is ncl, expected nd as input"}},
    {"GradInputOfAnotherFormatNobodyAskedFor",
     [](ConvCall& c) {
       make_1d(c), c.grad_input.format = ACL_FORMAT_NCL;
       c.mask.values = {0, 1, 1};
     },
     kNone,
     "",
     {}},
    {"GradWeightOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_weight.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradWeight.format is ncl, expected nd as weight"}},
    {"PaddingBehindOnly",
     [](ConvCall& c) {
       c.padding = {0, 256, 0, 0};
       c.grad_output.shape = {2, 4, 262, 6};
     },
     kAll,
     "conv.padding",
     {"padding[1] is 256, expected 0 to 255"}},
    {"PaddingOfFourWithin",
     [](ConvCall& c) {
       c.padding = {255, 254, 0, 0};
       c.grad_output.shape = {2, 4, 515, 6};
     },
     kNone,
     "",
     {}},
    {"NullsNobodyAskedFor",
     [](ConvCall& c) {
       c.grad_input.null = c.grad_weight.null = c.grad_bias.null = c.bias_sizes.null = true;
       c.mask.values = {0, 0, 0};
     },
     kNone,
     "",
     {}},
    {"KernelWithoutTapsOfAnEmptyBatch",
     [](ConvCall& c) {
       c.grad_output.shape = {0, 4, 9, 9};
       c.input.shape = c.grad_input.shape = {0, 3, 8, 8};
       c.weight.shape = c.grad_weight.shape = {4, 3, 0, 0};
     },
     kNone,
     "",
     {}},
    {"TransposedEmptyBatch",
     [](ConvCall& c) {
       make_transposed(c);
       c.grad_output.shape = {0, 5, 0, 3};
       c.input.shape = c.grad_input.shape = {0, 3, 99, 0};
     },
     kNone,
     "",
     {}},
};

class ConvProducts : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvProducts, RefuseWhatTheirTableSays) {
  ConvCall call;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

INSTANTIATE_TEST_SUITE_P(Acl, ConvProducts, ::testing::ValuesIn(kConvCases), name_of<ConvCall>);

TEST(Products, RefuseNullsThatTheMaskAsksFor) {
  const std::pair<const char*, std::function<void(ConvCall&)>> cases[] = {
      {"gradInput is null",
       [](ConvCall& c) {
         c.grad_input.null = true, c.mask.values = {1, 0, 0};
       }},
      {"gradWeight is null",
       [](ConvCall& c) {
         c.grad_weight.null = true, c.mask.values = {0, 1, 0};
       }},
      {"gradBias is null",
       [](ConvCall& c) {
         c.grad_bias.null = true, c.mask.values = {0, 0, 1};
       }},
      {"biasSizes is null",
       [](ConvCall& c) {
         c.bias_sizes.null = true, c.mask.values = {0, 0, 1};
       }},
  };
  for (const std::string product : kProducts) {
    const Rules rules(product);
    for (const auto& [text, make] : cases) {
      ConvCall call;
      make(call);
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_NULLPTR, {text})) << product;
    }
  }
}

// Nobody takes mode 2 on BF16, with rules or without; training refuses the type first.
TEST(Products, RefuseMode2OfBf16) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    ConvCall call;
    of_type(call, ACL_BF16);
    call.cube_math_type = 2;
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {product == "training" ? "rule conv.bf16" : "cubeMathType is 2"}));
  }
}

}  // namespace
}  // namespace retrograd::acl_test
