// SPDX-License-Identifier: Apache-2.0
// Every rule of aclnnConvTbcBackward, provoked: status, argument, value and rule.
#include "rule.h"

namespace retrograd::acl_test::tbc_rules_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;
using Tbc = TbcCall;

class TbcRules : public AclTest, public ::testing::WithParamInterface<Rule<Tbc>> {};

TEST_P(TbcRules, AreKeptAndExplained) { expect_rule(GetParam()); }

const Rule<Tbc> kNullRules[] = {
    {"SelfIsNull", [](Tbc& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"InputIsNull", [](Tbc& c) { c.input.null = true; }, kNull, {"input is null"}},
    {"WeightIsNull", [](Tbc& c) { c.weight.null = true; }, kNull, {"weight is null"}},
    {"BiasIsNull", [](Tbc& c) { c.bias.null = true; }, kNull, {"bias is null"}},
    {"GradInputIsNull", [](Tbc& c) { c.grad_input.null = true; }, kNull, {"gradInput is null"}},
    {"GradWeightIsNull", [](Tbc& c) { c.grad_weight.null = true; }, kNull, {"gradWeight is null"}},
    {"GradBiasIsNull", [](Tbc& c) { c.grad_bias.null = true; }, kNull, {"gradBias is null"}},
    {"WorkspaceSizeIsNull", [](Tbc& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](Tbc& c) { c.null_executor = true; }, kNull, {"executor is null"}},
};
INSTANTIATE_TEST_SUITE_P(Null, TbcRules, ::testing::ValuesIn(kNullRules), name_of<Tbc>);

const Rule<Tbc> kTypeRules[] = {
    {"SelfOfHiFloat8",
     [](Tbc& c) { c.self.dtype = ACL_HIFLOAT8; },
     kInvalid,
     {"self.dtype is ACL_HIFLOAT8 (34)", "expected one of ACL_FLOAT (0), ACL_FLOAT16 (1), ACL_BF16 (27)"}},
    {"InputOfInt32", [](Tbc& c) { c.input.dtype = ACL_INT32; }, kInvalid, {"input.dtype is ACL_INT32"}},
    {"GradInputOfE4M3",
     [](Tbc& c) { c.grad_input.dtype = ACL_FLOAT8_E4M3FN; },
     kInvalid,
     {"gradInput.dtype is ACL_FLOAT8_E4M3FN"}},
    {"GradBiasOfHiFloat8",
     [](Tbc& c) { c.grad_bias.dtype = ACL_HIFLOAT8; },
     kInvalid,
     {"gradBias.dtype is ACL_HIFLOAT8"}},
    {"GradWeightOfE5M2",
     [](Tbc& c) { c.grad_weight.dtype = ACL_FLOAT8_E5M2; },
     kInvalid,
     {"gradWeight.dtype is ACL_FLOAT8_E5M2"}},
    {"WeightOfAnotherType",
     [](Tbc& c) { c.weight.dtype = ACL_FLOAT16; },
     kInvalid,
     {"weight.dtype is f16", "expected f32: the type of self"}},
    {"InputOfAnotherType",
     [](Tbc& c) { c.input.dtype = ACL_BF16; },
     kInvalid,
     {"input.dtype is bf16", "expected f32"}},
    {"BiasOfAnotherType",
     [](Tbc& c) { c.bias.dtype = ACL_FLOAT16; },
     kInvalid,
     {"bias.dtype is f16", "expected f32"}},
    {"SelfOfNchw",
     [](Tbc& c) { c.self.format = ACL_FORMAT_NCHW; },
     kInvalid,
     {"self.format is ACL_FORMAT_NCHW (0)", "expected ACL_FORMAT_ND (2), ACL_FORMAT_NCL (47) at rank 3"}},
    {"BiasOfNhwc",
     [](Tbc& c) { c.bias.format = ACL_FORMAT_NHWC; },
     kInvalid,
     {"bias.format is ACL_FORMAT_NHWC (1)", "at rank 1"}},
    {"GradInputOfNdhwc",
     [](Tbc& c) { c.grad_input.format = ACL_FORMAT_NDHWC; },
     kInvalid,
     {"gradInput.format"}},
    {"CubeMathTypeFour", [](Tbc& c) { c.cube_math_type = 4; }, kInvalid, {"cubeMathType is 4", "expected 0"}},
    {"CubeMathTypeNegative", [](Tbc& c) { c.cube_math_type = -128; }, kInvalid, {"cubeMathType is -128"}},
    {"CubeMathTypeTwoForBf16",
     [](Tbc& c) {
       for (TensorArg* t : c.inputs()) t->dtype = ACL_BF16;
       c.cube_math_type = 2;
     },
     kInvalid,
     {"cubeMathType is 2", "bf16"}},
};
INSTANTIATE_TEST_SUITE_P(Type, TbcRules, ::testing::ValuesIn(kTypeRules), name_of<Tbc>);

const Rule<Tbc> kShapeRules[] = {
    {"SelfRank",
     [](Tbc& c) {
       c.self.shape = {5, 2};
     },
     kInvalid,
     {"self.shape has rank 2 (5x2)", "expected 3"}},
    {"InputRank",
     [](Tbc& c) {
       c.input.shape = {6, 2, 3, 1};
     },
     kInvalid,
     {"input.shape has rank 4", "expected 3"}},
    {"WeightRank", [](Tbc& c) { c.weight.shape = {4}; }, kInvalid, {"weight.shape has rank 1", "expected 3"}},
    {"BiasRank",
     [](Tbc& c) {
       c.bias.shape = {1, 4};
     },
     kInvalid,
     {"bias.shape has rank 2", "expected 1"}},
    {"InputChannels",
     [](Tbc& c) { c.input.shape[2] = c.grad_input.shape[2] = 5; },
     kInvalid,
     {"input.shape[2] is 5", "expected 3 = weight.shape[1]"}},
    {"BiasLength",
     [](Tbc& c) { c.bias.shape = c.grad_bias.shape = {3}; },
     kInvalid,
     {"bias.shape[0] is 3", "expected 4 = weight.shape[2]"}},
    {"SelfLength",
     [](Tbc& c) { c.self.shape[0] = 4; },
     kInvalid,
     {"self.shape[0] is 4, expected 5 = 6 + 2*1 - 4 + 1", "reproduce: retrograd explain \"conv_tbc "}},
    {"SelfBatch", [](Tbc& c) { c.self.shape[1] = 3; }, kInvalid, {"self.shape[1] is 3", "expected 2"}},
    {"SelfChannels", [](Tbc& c) { c.self.shape[2] = 3; }, kInvalid, {"self.shape[2] is 3", "expected 4"}},
    {"GradInputShape",
     [](Tbc& c) { c.grad_input.shape[0] = 5; },
     kInvalid,
     {"gradInput.shape[0] is 5", "expected 6"}},
    {"GradWeightShape",
     [](Tbc& c) { c.grad_weight.shape[1] = 2; },
     kInvalid,
     {"gradWeight.shape[1] is 2", "expected 3"}},
    {"GradBiasShape",
     [](Tbc& c) { c.grad_bias.shape = {5}; },
     kInvalid,
     {"gradBias.shape[0] is 5", "expected 4"}},
    {"PadNegative", [](Tbc& c) { c.pad = -1; }, kInvalid, {"pad is -1", "expected 0 to 2147483647"}},
    {"PadOf2To31",
     [](Tbc& c) { c.pad = int64_t{1} << 31; },
     kInvalid,
     {"pad is 2147483648", "expected 0 to 2147483647"}},
    {"PadThatOverflows", [](Tbc& c) { c.pad = INT64_MAX; }, kInvalid, {"pad is 9223372036854775807"}},
    {"KernelThatDoesNotFit",
     [](Tbc& c) { c.weight.shape[0] = c.grad_weight.shape[0] = 10; },
     kInvalid,
     {"the kernel does not fit into the padded input: self.shape[0] would be -1 = 6 + 2*1 - 10 + 1 (input T "
      "6, pad 1, kernel 10)"}},
    {"OverlappingGradWeight",
     [](Tbc& c) {
       c.grad_weight.strides = {0, 4, 1};
     },
     kInvalid,
     {"gradWeight.strides"}},
    {"InputBeyondItsStorage",
     [](Tbc& c) {
       c.input.storage = {6, 2, 2};
     },
     kInvalid,
     {"input leaves its storage"}},
};
INSTANTIATE_TEST_SUITE_P(Shape, TbcRules, ::testing::ValuesIn(kShapeRules), name_of<Tbc>);

TEST_F(AclTest, TbcTakesNclAndNdFormats) {
  Tbc call;
  for (const aclFormat format : {ACL_FORMAT_ND, ACL_FORMAT_NCL}) {
    for (TensorArg* tensor : call.inputs()) tensor->format = format;
    for (TensorArg* tensor : call.outputs()) tensor->format = format;
    const PhaseOne result = call.phase_one();
    ASSERT_EQ(result.status, ACLNN_SUCCESS) << result.message;
    EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
  }
}

}  // namespace
}  // namespace retrograd::acl_test::tbc_rules_test
