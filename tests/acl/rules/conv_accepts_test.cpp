// SPDX-License-Identifier: Apache-2.0
// What aclnnConvolutionBackward takes although it looks odd: masks, warnings, mixes of types, large numbers.
#include "../client.h"

namespace retrograd::acl_test {
namespace {

using Conv = ConvCall;

class ConvAccepts : public AclTest {
 protected:
  static void expect_accepted(const Conv& call) {
    const PhaseOne result = call.phase_one();
    EXPECT_EQ(result.status, ACLNN_SUCCESS) << result.message;
    if (result.status != ACLNN_SUCCESS) return;
    EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
  }
};

TEST_F(ConvAccepts, OutputsTheMaskLeavesOutWhateverTheyAre) {
  aclTensor* dead = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), ACLNN_SUCCESS);
  for (unsigned mask = 0; mask < 8; ++mask) {
    Conv call;
    for (size_t i = 0; i < 3; ++i) {
      call.mask.values[i] = (mask >> i) & 1;
      if (call.mask.values[i] != 0) continue;
      TensorArg& out = *call.outputs()[i];
      out.instead = i == 0 ? dead : nullptr;             // dead,
      out.null = i == 1;                                 // null,
      if (i == 2) out = TensorArg({-1, 7}, ACL_STRING);  // and absurd
      if (i == 2) call.bias_sizes.null = true;
    }
    SCOPED_TRACE(mask);
    expect_accepted(call);
  }
}

TEST_F(ConvAccepts, AnAllFalseMaskWithAWorkspaceOfZero) {
  Conv call;
  call.mask.values = {0, 0, 0};
  const PhaseOne result = call.phase_one();
  ASSERT_EQ(result.status, ACLNN_SUCCESS) << result.message;
  EXPECT_EQ(result.workspace_size, 0u);
  EXPECT_EQ(aclnnConvolutionBackward(nullptr, 0, result.executor, stream_), ACLNN_SUCCESS);
}

TEST_F(ConvAccepts, NoInvalidInputUnderAnAllFalseMask) {
  Conv call;
  call.mask.values = {0, 0, 0};
  call.grad_output.shape[3] = 7;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"gradOutput.shape[3] is 7"}));
}

TEST_F(ConvAccepts, WrongBiasSizesWithAWarning) {
  Conv call;
  call.bias_sizes = {7, 9};
  ::testing::internal::CaptureStderr();
  expect_accepted(call);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("biasSizes is [7, 9], expected [4]"),
            std::string::npos);
}

// The longest array there is: its beginning and its length say enough.
TEST_F(ConvAccepts, LongBiasSizesWithAShortWarning) {
  Conv call;
  call.bias_sizes = Sizes(65536, 3);
  ::testing::internal::CaptureStderr();
  expect_accepted(call);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("biasSizes is [3, 3, 3"), std::string::npos) << warning;
  EXPECT_NE(warning.find(", ...(65536 entries)], expected [4]"), std::string::npos) << warning;
  EXPECT_LT(warning.size(), 300u);
}

TEST_F(ConvAccepts, RightBiasSizesSilently) {
  ::testing::internal::CaptureStderr();
  expect_accepted(Conv());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Without a batch gradOutput's channels are not judged: those that count are groups * weight.shape[1].
TEST_F(ConvAccepts, BiasSizesOfATransposedEmptyBatchByTheWeight) {
  Conv call;
  make_transposed(call);
  call.grad_output.shape = {0, 7, 9, 9};
  call.input.shape = call.grad_input.shape = {0, 3, 4, 4};
  ::testing::internal::CaptureStderr();
  expect_accepted(call);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  call.bias_sizes = {7};
  ::testing::internal::CaptureStderr();
  expect_accepted(call);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                "biasSizes is [7], expected [5], the output channels; it is not used"),
            std::string::npos);
}

TEST_F(ConvAccepts, Hf32OnHalfPrecisionWithAWarning) {
  Conv call;
  call.cube_math_type = 3;
  for (TensorArg* tensor : call.inputs()) tensor->dtype = ACL_FLOAT16;
  ::testing::internal::CaptureStderr();
  expect_accepted(call);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("cubeMathType is 3 (USE_HF32)"), std::string::npos);
}

TEST_F(ConvAccepts, EveryMathTypeTheTableAllows) {
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN}) {
    for (int8_t type = 0; type <= 3; ++type) {
      if (dtype == ACL_BF16 && type == 2) continue;
      if (dtype == ACL_FLOAT16 && type == 3) continue;  // the test above wants its warning, which comes once
      Conv call;
      call.cube_math_type = type;
      for (TensorArg* tensor : call.inputs()) tensor->dtype = dtype;
      SCOPED_TRACE(testing::Message() << dtype << " " << int{type});
      expect_accepted(call);
    }
  }
}

TEST_F(ConvAccepts, EveryFormatTheTableAllows) {
  Conv one;
  make_1d(one);
  for (const aclFormat format : {ACL_FORMAT_NCL, ACL_FORMAT_ND}) {
    for (TensorArg* tensor : {&one.grad_output, &one.input, &one.weight, &one.grad_input, &one.grad_weight})
      tensor->format = format;
    expect_accepted(one);
  }
  expect_accepted(Conv());
  Conv three;
  make_3d(three);
  expect_accepted(three);
}

TEST_F(ConvAccepts, AnyFormatOfATransposedBias) {
  for (const aclFormat format :
       {ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_NC, ACL_FORMAT_NHWC}) {
    Conv call;
    make_transposed(call);
    call.grad_bias.format = format;
    expect_accepted(call);
    Conv plain;
    plain.grad_bias.format = format;
    if (format == ACL_FORMAT_ND) {
      expect_accepted(plain);
    } else {
      EXPECT_TRUE(refused(plain.phase_one(), ACLNN_ERR_PARAM_INVALID, {"gradBias.format"}));
    }
  }
}

// The weight alone is judged: its first axis is the input's channels, and not empty.
TEST_F(ConvAccepts, AnySizesOfATransposedConvolutionWithoutABatch) {
  Conv call;
  make_transposed(call);
  call.grad_output.shape = {0, 5, 123, 7};
  call.input.shape = call.grad_input.shape = {0, 3, 4, 0};
  expect_accepted(call);
  call.weight.shape = call.grad_weight.shape = {3, 0, 0, 3};
  call.grad_bias.shape = {0};
  expect_accepted(call);
  call.input.shape[1] = call.grad_input.shape[1] = 4;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"weight.shape[0] is 3, expected 4"}));
  call.weight.shape[0] = call.grad_weight.shape[0] = call.input.shape[1] = call.grad_input.shape[1] = 0;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"weight.shape[0] is 0", "at least 1"}));
}

TEST_F(ConvAccepts, EveryPromotionTheTableAllows) {
  for (const aclDataType a : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
    for (const aclDataType b : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
      Conv call;
      call.grad_output.dtype = a;
      call.weight.dtype = b;
      for (const aclDataType out : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
        for (TensorArg* tensor : call.outputs()) tensor->dtype = out;
        expect_accepted(call);
      }
    }
  }
}

TEST_F(ConvAccepts, NumbersBeyondTheChipsLimits) {
  Conv call;
  call.weight.shape = call.grad_weight.shape = {4, 3, 600, 1};
  call.padding = {300, 0};
  call.stride = {100, 1};
  call.grad_output.shape = {2, 4, 1, 8};
  expect_accepted(call);
}

}  // namespace
}  // namespace retrograd::acl_test
