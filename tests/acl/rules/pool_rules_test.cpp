// SPDX-License-Identifier: Apache-2.0
// Every rule of aclnnAvgPool2dBackward and aclnnAvgPool3dBackward, provoked: status, argument, value and
// rule.
#include "rule.h"

namespace retrograd::acl_test::pool_rules_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;
using P2 = Pool2dCall;
using P3 = Pool3dCall;

class Pool2dRules : public AclTest, public ::testing::WithParamInterface<Rule<P2>> {};
class Pool3dRules : public AclTest, public ::testing::WithParamInterface<Rule<P3>> {};

TEST_P(Pool2dRules, AreKeptAndExplained) { expect_rule(GetParam()); }
TEST_P(Pool3dRules, AreKeptAndExplained) { expect_rule(GetParam()); }

const Rule<P2> k2d[] = {
    {"GradOutputIsNull", [](P2& c) { c.grad_output.null = true; }, kNull, {"gradOutput is null"}},
    {"SelfIsNull", [](P2& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"KernelSizeIsNull", [](P2& c) { c.kernel_size.null = true; }, kNull, {"kernelSize is null"}},
    {"StrideIsNull", [](P2& c) { c.stride.null = true; }, kNull, {"stride is null"}},
    {"PaddingIsNull", [](P2& c) { c.padding.null = true; }, kNull, {"padding is null"}},
    {"GradInputIsNull", [](P2& c) { c.grad_input.null = true; }, kNull, {"gradInput is null"}},
    {"WorkspaceSizeIsNull", [](P2& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](P2& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"GradOutputOfHiFloat8",
     [](P2& c) { c.grad_output.dtype = ACL_HIFLOAT8; },
     kInvalid,
     {"gradOutput.dtype is ACL_HIFLOAT8", "expected one of ACL_FLOAT (0), ACL_FLOAT16 (1), ACL_BF16 (27)"}},
    {"SelfOfAnotherType",
     [](P2& c) { c.self.dtype = ACL_FLOAT16; },
     kInvalid,
     {"self.dtype is f16", "expected f32"}},
    {"GradInputOfAnotherType",
     [](P2& c) { c.grad_input.dtype = ACL_BF16; },
     kInvalid,
     {"gradInput.dtype is bf16"}},
    {"SelfOfNclAtRank4",
     [](P2& c) { c.self.format = ACL_FORMAT_NCL; },
     kInvalid,
     {"self.format is ACL_FORMAT_NCL (47)", "expected ACL_FORMAT_NCHW (0), ACL_FORMAT_ND (2) at rank 4"}},
    {"GradOutputOfNhwc",
     [](P2& c) { c.grad_output.format = ACL_FORMAT_NHWC; },
     kInvalid,
     {"gradOutput.format"}},
    {"CubeMathTypeFour",
     [](P2& c) { c.cube_math_type = 4; },
     kInvalid,
     {"cubeMathType is 4", "expected 0 to 3"}},
    {"CubeMathTypeNegative",
     [](P2& c) { c.cube_math_type = -1; },
     kInvalid,
     {"cubeMathType is -1", "0 to 3"}},
    {"SelfOfRank2",
     [](P2& c) {
       c.self.shape = {6, 4};
     },
     kInvalid,
     {"self.shape has rank 2", "expected 3 or 4"}},
    {"SelfOfRank5",
     [](P2& c) {
       c.self.shape = {2, 3, 1, 6, 4};
     },
     kInvalid,
     {"self.shape has rank 5", "expected 3 or 4"}},
    {"GradOutputRank",
     [](P2& c) {
       c.grad_output.shape = {3, 3, 2};
     },
     kInvalid,
     {"gradOutput.shape has rank 3"}},
    {"Batch",
     [](P2& c) { c.grad_output.shape[0] = 1; },
     kInvalid,
     {"gradOutput.shape[0] is 1", "expected 2"}},
    {"Channels",
     [](P2& c) { c.grad_output.shape[1] = 4; },
     kInvalid,
     {"gradOutput.shape[1] is 4", "expected 3"}},
    {"Width",
     [](P2& c) { c.grad_output.shape[3] = 3; },
     kInvalid,
     {"gradOutput.shape[3] is 3, expected 2 = floor((4 + 2*0 - 2)/2) + 1",
      "reproduce: retrograd explain \"avgpool "}},
    {"HeightInCeilMode",
     [](P2& c) {
       c.ceil_mode = true;
       c.self.shape[2] = c.grad_input.shape[2] = 7;
     },
     kInvalid,
     {"gradOutput.shape[2] is 3, expected 4", "ceil"}},
    {"GradInputShape",
     [](P2& c) { c.grad_input.shape[2] = 5; },
     kInvalid,
     {"gradInput.shape[2] is 5", "expected 6"}},
    {"KernelZero",
     [](P2& c) {
       c.kernel_size = {0, 2};
     },
     kInvalid,
     {"kernelSize[0] is 0", "at least 1"}},
    {"KernelNegative",
     [](P2& c) {
       c.kernel_size = {2, -2};
     },
     kInvalid,
     {"kernelSize[1] is -2"}},
    {"KernelEmpty", [](P2& c) { c.kernel_size = Sizes{}; }, kInvalid, {"kernelSize has 0 entries", "1 or 2"}},
    {"KernelOfThree",
     [](P2& c) {
       c.kernel_size = {2, 2, 2};
     },
     kInvalid,
     {"kernelSize has 3 entries", "1 or 2"}},
    {"StrideZero",
     [](P2& c) {
       c.stride = {2, 0};
     },
     kInvalid,
     {"stride[1] is 0", "at least 1"}},
    {"StrideOfThree",
     [](P2& c) {
       c.stride = {2, 2, 2};
     },
     kInvalid,
     {"stride has 3 entries"}},
    {"PaddingNegative",
     [](P2& c) {
       c.padding = {-1, 0};
     },
     kInvalid,
     {"padding[0] is -1", "at least 0"}},
    {"PaddingBeyondHalfTheKernel",
     [](P2& c) {
       c.padding = {0, 2};
     },
     kInvalid,
     {"padding[1] is 2", "expected at most 1", "half the kernel"}},
    {"PaddingEmpty", [](P2& c) { c.padding = Sizes{}; }, kInvalid, {"padding has 0 entries"}},
    {"KernelLargerThanTheInput",
     [](P2& c) {
       c.kernel_size = {2, 9};
       c.grad_output.shape[3] = 1;
     },
     kInvalid,
     {"kernel", "gradOutput.shape[3]"}},
    {"OverlappingGradInput",
     [](P2& c) {
       c.grad_input.strides = {72, 24, 4, 0};
     },
     kInvalid,
     {"gradInput.strides"}},
    {"GradOutputBeyondItsStorage",
     [](P2& c) { c.grad_output.storage = {35}; },
     kInvalid,
     {"gradOutput leaves its storage"}},
    {"NumbersThatOverflow",
     [](P2& c) {
       c.kernel_size = c.stride = {INT64_MAX, INT64_MAX};
     },
     kInvalid,
     {"64 bits"}},
};
INSTANTIATE_TEST_SUITE_P(Each, Pool2dRules, ::testing::ValuesIn(k2d), name_of<P2>);

const Rule<P3> k3d[] = {
    {"GradOutputIsNull", [](P3& c) { c.grad_output.null = true; }, kNull, {"gradOutput is null"}},
    {"SelfIsNull", [](P3& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"KernelSizeIsNull", [](P3& c) { c.kernel_size.null = true; }, kNull, {"kernelSize is null"}},
    {"StrideIsNull", [](P3& c) { c.stride.null = true; }, kNull, {"stride is null"}},
    {"PaddingIsNull", [](P3& c) { c.padding.null = true; }, kNull, {"padding is null"}},
    {"OutputIsNull", [](P3& c) { c.grad_input.null = true; }, kNull, {"output is null"}},
    {"WorkspaceSizeIsNull", [](P3& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](P3& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"SelfOfNchwAtRank5",
     [](P3& c) { c.self.format = ACL_FORMAT_NCHW; },
     kInvalid,
     {"self.format is ACL_FORMAT_NCHW (0)", "expected ACL_FORMAT_NCDHW (30), ACL_FORMAT_ND (2) at rank 5"}},
    {"SelfOfRank3",
     [](P3& c) {
       c.self.shape = {2, 6, 4};
     },
     kInvalid,
     {"self.shape has rank 3", "expected 4 or 5"}},
    {"KernelOfTwo",
     [](P3& c) {
       c.kernel_size = {2, 2};
     },
     kInvalid,
     {"kernelSize has 2 entries", "1 or 3"}},
    {"Depth", [](P3& c) { c.grad_output.shape[2] = 2; }, kInvalid, {"gradOutput.shape[2] is 2, expected 1"}},
    {"OutputShape",
     [](P3& c) { c.grad_input.shape[4] = 5; },
     kInvalid,
     {"output.shape[4] is 5", "expected 4"}},
    {"OutputOfAnotherType",
     [](P3& c) { c.grad_input.dtype = ACL_FLOAT16; },
     kInvalid,
     {"output.dtype is f16"}},
    {"PaddingBeyondHalfTheKernel",
     [](P3& c) {
       c.padding = {0, 0, 2};
     },
     kInvalid,
     {"padding[2] is 2", "at most 1"}},
};
INSTANTIATE_TEST_SUITE_P(Each, Pool3dRules, ::testing::ValuesIn(k3d), name_of<P3>);

template <class Call>
void expect_accepted(const Call& call) {
  const PhaseOne result = call.phase_one();
  ASSERT_EQ(result.status, ACLNN_SUCCESS) << result.message;
  EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
}

TEST_F(AclTest, PoolingTakesOneEntryForAllAxesAndAnEmptyStrideForTheKernel) {
  P2 two;
  two.kernel_size = {2};
  two.padding = {0};
  two.stride = Sizes{};
  expect_accepted(two);
  P3 three;
  three.kernel_size = {2};
  three.padding = {0};
  three.stride = Sizes{};
  expect_accepted(three);
}

TEST_F(AclTest, PoolingTakesTensorsWithoutABatchInTheFormatsOfTheirRank) {
  P2 two;
  two.grad_output.shape = {3, 3, 2};
  two.self.shape = two.grad_input.shape = {3, 6, 4};
  for (const aclFormat format : {ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_ND}) {
    two.grad_output.format = two.self.format = two.grad_input.format = format;
    expect_accepted(two);
  }
  P3 three;
  three.grad_output.shape = {2, 1, 3, 2};
  three.self.shape = three.grad_input.shape = {2, 2, 6, 4};
  for (const aclFormat format : {ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW, ACL_FORMAT_ND}) {
    three.grad_output.format = three.self.format = three.grad_input.format = format;
    expect_accepted(three);
  }
}

TEST_F(AclTest, PoolingTakesEveryMathType) {
  P2 call;
  for (call.cube_math_type = 0; call.cube_math_type <= 3; ++call.cube_math_type) expect_accepted(call);
}

}  // namespace
}  // namespace retrograd::acl_test::pool_rules_test
