// SPDX-License-Identifier: Apache-2.0
// The forward operators: every rule provoked (status, argument, value and rule), what is legal, and values.
#include "../run_call.h"
#include "rule.h"

namespace retrograd::acl_test::forward_rules_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;
using Conv = ForwardConvCall;
using Tbc = ForwardTbcCall;
using P2 = ForwardPool2dCall;
using P3 = ForwardPool3dCall;

class ForwardConvRules : public AclTest, public ::testing::WithParamInterface<Rule<Conv>> {};
class ForwardTbcRules : public AclTest, public ::testing::WithParamInterface<Rule<Tbc>> {};
class ForwardPool2dRules : public AclTest, public ::testing::WithParamInterface<Rule<P2>> {};
class ForwardPool3dRules : public AclTest, public ::testing::WithParamInterface<Rule<P3>> {};
TEST_P(ForwardConvRules, AreKeptAndExplained) { expect_rule(GetParam()); }
TEST_P(ForwardTbcRules, AreKeptAndExplained) { expect_rule(GetParam()); }
TEST_P(ForwardPool2dRules, AreKeptAndExplained) { expect_rule(GetParam()); }
TEST_P(ForwardPool3dRules, AreKeptAndExplained) { expect_rule(GetParam()); }

// clang-format off
const Rule<Conv> kConv[] = {
    {"InputIsNull", [](Conv& c) { c.input.null = true; }, kNull, {"input is null"}},
    {"WeightIsNull", [](Conv& c) { c.weight.null = true; }, kNull, {"weight is null"}},
    {"StrideIsNull", [](Conv& c) { c.stride.null = true; }, kNull, {"stride is null"}},
    {"PaddingIsNull", [](Conv& c) { c.padding.null = true; }, kNull, {"padding is null"}},
    {"DilationIsNull", [](Conv& c) { c.dilation.null = true; }, kNull, {"dilation is null"}},
    {"OutputPaddingIsNull", [](Conv& c) { c.output_padding.null = true; }, kNull, {"outputPadding is null"}},
    {"OutputIsNull", [](Conv& c) { c.output.null = true; }, kNull, {"output is null"}},
    {"WorkspaceSizeIsNull", [](Conv& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](Conv& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"InputOfDouble", [](Conv& c) { c.input.dtype = ACL_DOUBLE; }, kInvalid, {"input.dtype is ACL_DOUBLE (11)", "expected one of"}},
    {"WeightOfInt8", [](Conv& c) { c.weight.dtype = ACL_INT8; }, kInvalid, {"weight.dtype is ACL_INT8 (2)"}},
    {"OutputOfInt32", [](Conv& c) { c.output.dtype = ACL_INT32; }, kInvalid, {"output.dtype is ACL_INT32 (3)"}},
    {"BiasOfInt64", [](Conv& c) { c.bias.dtype = ACL_INT64; }, kInvalid, {"bias.dtype is ACL_INT64"}},
    {"BiasOfAnotherType", [](Conv& c) { c.bias.dtype = ACL_FLOAT16; }, kInvalid, {"bias.dtype is f16", "expected f32", "the type of the products, or f32"}},
    {"HiFloat8WithFloat", [](Conv& c) { c.weight.dtype = ACL_HIFLOAT8; }, kInvalid, {"dtypes differ (input f32, weight hif8)", "8-bit types do not mix"}},
    {"OutputOf8BitsFromFloat", [](Conv& c) { c.output.dtype = ACL_HIFLOAT8; }, kInvalid, {"output.dtype is hif8", "expected f32, f16, bf16"}},
    {"InputOfNhwc", [](Conv& c) { c.input.format = ACL_FORMAT_NHWC; }, kInvalid, {"input.format is ACL_FORMAT_NHWC (1)", "expected ACL_FORMAT_NCHW (0) at rank 4"}},
    {"OutputOfNd", [](Conv& c) { c.output.format = ACL_FORMAT_ND; }, kInvalid, {"output.format is ACL_FORMAT_ND (2)"}},
    {"BiasOfNcl", [](Conv& c) { c.bias.format = ACL_FORMAT_NCL; }, kInvalid, {"bias.format is ACL_FORMAT_NCL (47)"}},
    {"InputOfRank6", [](Conv& c) { c.input.shape = {1, 1, 1, 1, 1, 1}; }, kInvalid, {"input.shape has rank 6", "expected 3, 4 or 5"}},
    {"WeightRank", [](Conv& c) { c.weight.shape = {4, 3, 3}; }, kInvalid, {"weight.shape has rank 3", "expected 4"}},
    {"OutputRank", [](Conv& c) { c.output.shape = {2, 4, 36}; }, kInvalid, {"output.shape has rank 3", "expected 4"}},
    {"BiasRank", [](Conv& c) { c.bias.shape = {4, 1}; }, kInvalid, {"bias.shape has rank 2", "expected 1"}},
    {"BiasLength", [](Conv& c) { c.bias.shape = {3}; }, kInvalid, {"bias.shape[0] is 3, expected 4", "one element for each output channel"}},
    {"Batch", [](Conv& c) { c.output.shape[0] = 1; }, kInvalid, {"output.shape[0] is 1, expected 2", "the batch of input"}},
    {"Channels", [](Conv& c) { c.output.shape[1] = 5; }, kInvalid, {"output.shape[1] is 5, expected 4", "the output channels"}},
    {"Width", [](Conv& c) { c.output.shape[3] = 7; }, kInvalid, {"output.shape[3] is 7, expected 6 = floor((8 + 0 + 0 - 1*(3-1) - 1)/1) + 1", "reproduce: retrograd explain \"conv ", "forward=1"}},
    {"EmptyOutputOfSomething", [](Conv& c) { c.output.shape[3] = 0; }, kInvalid, {"output.shape[3] is 0, expected 6"}},
    {"KernelDoesNotFit", [](Conv& c) { c.dilation = {1, 5}; }, kInvalid, {"the kernel does not fit", "output.shape[3]"}},
    {"StrideZero", [](Conv& c) { c.stride = {1, 0}; }, kInvalid, {"stride[1] is 0", "at least 1"}},
    {"StrideLength", [](Conv& c) { c.stride = {1}; }, kInvalid, {"stride has 1 entries", "expected 2"}},
    {"PaddingNegative", [](Conv& c) { c.padding = {-1, 0}; }, kInvalid, {"padding[0] is -1", "at least 0"}},
    {"DilationZero", [](Conv& c) { c.dilation = {0, 1}; }, kInvalid, {"dilation[0] is 0", "at least 1"}},
    {"OutputPaddingOfAPlainOne", [](Conv& c) { c.output_padding = {0, 1}; }, kInvalid, {"outputPadding[1] is 1", "expected 0 as the convolution is not transposed"}},
    {"OutputPaddingOfStrideAndDilation", [](Conv& c) { make_transposed(c), c.output_padding = {0, 2}; }, kInvalid, {"outputPadding[1] is 2, expected 0 to 1", "less than the stride or the dilation"}},
    {"GroupsZero", [](Conv& c) { c.groups = 0; }, kInvalid, {"groups is 0", "expected 1 to 65535"}},
    {"GroupsTooMany", [](Conv& c) { c.groups = 65536; }, kInvalid, {"groups is 65536", "expected 1 to 65535"}},
    {"GroupsDoNotFit", [](Conv& c) { c.groups = 3; }, kInvalid, {"groups is 3", "weight.shape[1] (3)", "groups = 1 would fit"}},
    {"TransposedChannels", [](Conv& c) { make_transposed(c), c.weight.shape[0] = 4; }, kInvalid, {"weight.shape[0] is 4, expected 3 = input.shape[1]"}},
    {"TransposedSize", [](Conv& c) { make_transposed(c), c.output.shape[2] = 10; }, kInvalid, {"output.shape[2] is 10, expected 9 = (4 - 1)*2"}},
    {"CubeMathTypeFour", [](Conv& c) { c.cube_math_type = 4; }, kInvalid, {"cubeMathType is 4"}},
    {"UseFp16WithBf16", [](Conv& c) { for (TensorArg* t : c.inputs()) t->dtype = ACL_BF16; c.cube_math_type = 2; }, kInvalid, {"cubeMathType is 2 (USE_FP16), which bf16 operands do not allow"}},
    {"OutputOverlapsItself", [](Conv& c) { c.output.strides = Sizes{144, 36, 0, 1}; }, kInvalid, {"output.strides is 144x36x0x1", "share an address"}},
    {"InputLeavesItsStorage", [](Conv& c) { c.input.storage = {2, 3, 8, 7}; }, kInvalid, {"input"}},
};
const Rule<Tbc> kTbc[] = {
    {"SelfIsNull", [](Tbc& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"WeightIsNull", [](Tbc& c) { c.weight.null = true; }, kNull, {"weight is null"}},
    {"BiasIsNull", [](Tbc& c) { c.bias.null = true; }, kNull, {"bias is null"}},
    {"OutputIsNull", [](Tbc& c) { c.output.null = true; }, kNull, {"output is null"}},
    {"WorkspaceSizeIsNull", [](Tbc& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](Tbc& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"SelfOf8Bits", [](Tbc& c) { c.self.dtype = ACL_HIFLOAT8; }, kInvalid, {"self.dtype is ACL_HIFLOAT8"}},
    {"OutputOf8Bits", [](Tbc& c) { c.output.dtype = ACL_HIFLOAT8; }, kInvalid, {"output.dtype is ACL_HIFLOAT8"}},
    {"WeightOfAnotherType", [](Tbc& c) { c.weight.dtype = ACL_BF16; }, kInvalid, {"weight.dtype is bf16, expected f32: the type of self"}},
    {"BiasOfAnotherType", [](Tbc& c) { c.bias.dtype = ACL_FLOAT16; }, kInvalid, {"bias.dtype is f16, expected f32: the type of self"}},
    {"SelfOfNchw", [](Tbc& c) { c.self.format = ACL_FORMAT_NCHW; }, kInvalid, {"self.format is ACL_FORMAT_NCHW (0)"}},
    {"SelfRank", [](Tbc& c) { c.self.shape = {6, 6}; }, kInvalid, {"self.shape has rank 2", "expected 3"}},
    {"WeightRank", [](Tbc& c) { c.weight.shape = {4, 12}; }, kInvalid, {"weight.shape has rank 2", "expected 3"}},
    {"BiasRank", [](Tbc& c) { c.bias.shape = {4, 1, 1}; }, kInvalid, {"bias.shape has rank 3", "expected 1"}},
    {"OutputRank", [](Tbc& c) { c.output.shape = {5}; }, kInvalid, {"output.shape has rank 1", "expected 3"}},
    {"Channels", [](Tbc& c) { c.self.shape[2] = 4; }, kInvalid, {"self.shape[2] is 4, expected 3 = weight.shape[1]"}},
    {"BiasLength", [](Tbc& c) { c.bias.shape = {5}; }, kInvalid, {"bias.shape[0] is 5, expected 4 = weight.shape[2]"}},
    {"Time", [](Tbc& c) { c.output.shape[0] = 6; }, kInvalid, {"output.shape[0] is 6, expected 5 = 6 + 2*1 - 4 + 1"}},
    {"Batch", [](Tbc& c) { c.output.shape[1] = 3; }, kInvalid, {"output.shape[1] is 3, expected 2"}},
    {"PadNegative", [](Tbc& c) { c.pad = -1; }, kInvalid, {"pad is -1", "expected 0 to 2147483647"}},
    {"CubeMathTypeFour", [](Tbc& c) { c.cube_math_type = 4; }, kInvalid, {"cubeMathType is 4"}},
    {"OutputOverlapsItself", [](Tbc& c) { c.output.strides = Sizes{8, 0, 1}; }, kInvalid, {"output.strides is 8x0x1", "share an address"}},
};
const Rule<P2> k2d[] = {
    {"SelfIsNull", [](P2& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"KernelSizeIsNull", [](P2& c) { c.kernel_size.null = true; }, kNull, {"kernelSize is null"}},
    {"StridesIsNull", [](P2& c) { c.stride.null = true; }, kNull, {"strides is null"}},
    {"PaddingsIsNull", [](P2& c) { c.padding.null = true; }, kNull, {"paddings is null"}},
    {"OutIsNull", [](P2& c) { c.out.null = true; }, kNull, {"out is null"}},
    {"WorkspaceSizeIsNull", [](P2& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](P2& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"SelfOfHiFloat8", [](P2& c) { c.self.dtype = ACL_HIFLOAT8; }, kInvalid, {"self.dtype is ACL_HIFLOAT8", "expected one of ACL_FLOAT (0)"}},
    {"OutOfAnotherType", [](P2& c) { c.out.dtype = ACL_FLOAT16; }, kInvalid, {"out.dtype is f16, expected f32: the type of self"}},
    {"SelfOfNhwc", [](P2& c) { c.self.format = ACL_FORMAT_NHWC; }, kInvalid, {"self.format is ACL_FORMAT_NHWC (1)"}},
    {"CubeMathTypeFour", [](P2& c) { c.cube_math_type = 4; }, kInvalid, {"cubeMathType is 4", "expected 0 to 3"}},
    {"SelfOfRank2", [](P2& c) { c.self.shape = {6, 4}; }, kInvalid, {"self.shape has rank 2", "expected 3 or 4"}},
    {"OutRank", [](P2& c) { c.out.shape = {3, 3, 2}; }, kInvalid, {"out.shape has rank 3"}},
    {"Batch", [](P2& c) { c.out.shape[0] = 1; }, kInvalid, {"out.shape[0] is 1, expected 2"}},
    {"Width", [](P2& c) { c.out.shape[3] = 3; }, kInvalid, {"out.shape[3] is 3, expected 2 = floor((4 + 2*0 - 2)/2) + 1", "reproduce: retrograd explain \"avgpool ", "forward=1"}},
    {"HeightInCeilMode", [](P2& c) { c.ceil_mode = true; c.self.shape[2] = 7; }, kInvalid, {"out.shape[2] is 3, expected 4", "ceil"}},
    {"KernelZero", [](P2& c) { c.kernel_size = {0, 2}; }, kInvalid, {"kernelSize[0] is 0", "at least 1"}},
    {"KernelLength", [](P2& c) { c.kernel_size = {2, 2, 2}; }, kInvalid, {"kernelSize has 3 entries", "1 or 2"}},
    {"StrideZero", [](P2& c) { c.stride = {2, 0}; }, kInvalid, {"strides[1] is 0", "at least 1"}},
    {"PaddingTooLarge", [](P2& c) { c.padding = {0, 2}; }, kInvalid, {"paddings[1] is 2, expected at most 1: half the kernel of 2"}},
    {"OutOverlapsItself", [](P2& c) { c.out.strides = Sizes{18, 6, 2, 0}; }, kInvalid, {"out.strides is 18x6x2x0", "share an address"}},
};
const Rule<P3> k3d[] = {
    {"SelfIsNull", [](P3& c) { c.self.null = true; }, kNull, {"self is null"}},
    {"KernelSizeIsNull", [](P3& c) { c.kernel_size.null = true; }, kNull, {"kernelSize is null"}},
    {"StrideIsNull", [](P3& c) { c.stride.null = true; }, kNull, {"stride is null"}},
    {"PaddingIsNull", [](P3& c) { c.padding.null = true; }, kNull, {"padding is null"}},
    {"OutIsNull", [](P3& c) { c.out.null = true; }, kNull, {"out is null"}},
    {"WorkspaceSizeIsNull", [](P3& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](P3& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"SelfOfRank3", [](P3& c) { c.self.shape = {2, 6, 4}; }, kInvalid, {"self.shape has rank 3", "expected 4 or 5"}},
    {"Depth", [](P3& c) { c.out.shape[2] = 2; }, kInvalid, {"out.shape[2] is 2, expected 1"}},
    {"PaddingTooLarge", [](P3& c) { c.padding = {2, 0, 0}; }, kInvalid, {"padding[0] is 2, expected at most 1"}},
    {"OutOfAnotherType", [](P3& c) { c.out.dtype = ACL_BF16; }, kInvalid, {"out.dtype is bf16, expected f32: the type of self"}},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Forward, ForwardConvRules, ::testing::ValuesIn(kConv), name_of<Conv>);
INSTANTIATE_TEST_SUITE_P(Forward, ForwardTbcRules, ::testing::ValuesIn(kTbc), name_of<Tbc>);
INSTANTIATE_TEST_SUITE_P(Forward, ForwardPool2dRules, ::testing::ValuesIn(k2d), name_of<P2>);
INSTANTIATE_TEST_SUITE_P(Forward, ForwardPool3dRules, ::testing::ValuesIn(k3d), name_of<P3>);

class ForwardTest : public AclTest {
 protected:
  template <class Call>
  void expect_legal(const char* what, const std::function<void(Call&)>& change) {
    Call call;
    change(call);
    const PhaseOne result = call.phase_one();
    EXPECT_EQ(result.status, ACLNN_SUCCESS) << what << ": " << result.message;
    if (result.status == ACLNN_SUCCESS) {
      EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
    }
  }
};

TEST_F(ForwardTest, AcceptsWhatTheRulesAllow) {
  expect_legal<Conv>("no bias", [](Conv& c) { c.bias.null = true; });
  expect_legal<Conv>("a FLOAT bias of FLOAT16 operands", [](Conv& c) {
    c.input.dtype = c.weight.dtype = ACL_FLOAT16;
    c.output.dtype = ACL_BF16;
  });
  expect_legal<Conv>("a bias of the promoted type", [](Conv& c) { c.input.dtype = ACL_FLOAT16; });
  expect_legal<Conv>("8-bit operands, bias and output", [](Conv& c) {
    for (TensorArg* t : {&c.input, &c.weight, &c.bias, &c.output}) t->dtype = ACL_HIFLOAT8;
  });
  expect_legal<Conv>("output padding up to the dilation", [](Conv& c) {
    make_transposed(c);
    c.stride = {1, 1};
    c.dilation = {3, 3};
    c.output_padding = {2, 2};
    c.output.shape = {2, 5, 12, 12};
  });
  expect_legal<Conv>("two-sided padding", [](Conv& c) {
    c.padding = {1, 0, 0, 2};
    c.output.shape = {2, 4, 7, 8};
  });
  expect_legal<Conv>("an empty batch", [](Conv& c) { c.input.shape[0] = c.output.shape[0] = 0; });
  expect_legal<Conv>("any format of a transposed one's bias", [](Conv& c) {
    make_transposed(c);
    c.bias.format = ACL_FORMAT_NCL;
  });
  expect_legal<P2>("no batch and empty strides", [](P2& c) {
    c.self.shape = {3, 6, 4};
    c.out.shape = {3, 3, 2};
    c.stride = Sizes{};
  });
}

TEST_F(ForwardTest, ConvolutionAddsItsBias) {
  const Values ones(2 * 3 * 8 * 8, 1), weight(4 * 3 * 3 * 3, 1), bias{1, 2, 3, -27};
  const auto with = run(Conv{}, {ones, weight, bias}, stream_);
  ASSERT_EQ(with.size(), 1U);
  for (size_t i = 0; i < with[0].size(); ++i) ASSERT_EQ(with[0][i], 27 + bias[i / 36 % 4]) << i;
  Conv without;
  without.bias.null = true;
  EXPECT_EQ(run(without, {ones, weight}, stream_)[0], Values(2 * 4 * 36, 27));
}

// 2048 + 1 is no FLOAT16: rounding before the bias is added would lose it.
TEST_F(ForwardTest, TheBiasIsAddedBeforeTheOneRounding) {
  Conv call;
  for (TensorArg* t : {&call.input, &call.weight, &call.output}) t->dtype = ACL_FLOAT16;
  call.input.shape = {1, 2, 1, 1};
  call.weight.shape = {1, 2, 1, 1};
  call.output.shape = {1, 1, 1, 1};
  call.bias.shape = {1};
  EXPECT_EQ(run(call, {{2048, 1}, {1, 1}, {1}}, stream_)[0], Values{2050});
}

TEST_F(ForwardTest, TransposedConvolutionReachesPlacesWithoutTapsToo) {
  Conv call;
  make_transposed(call);
  call.weight.shape = {3, 5, 1, 1};
  call.output.shape = {2, 5, 8, 8};
  call.output_padding = {1, 1};
  const auto y = run(call, {Values(2 * 3 * 16, 1), Values(15, 1), {1, 2, 3, 4, 5}}, stream_)[0];
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t h = i / 8 % 8, w = i % 8, channel = i / 64 % 5;
    ASSERT_EQ(y[i], static_cast<float>(channel + 1) + (h % 2 == 0 && w % 2 == 0 ? 3.0F : 0.0F)) << i;
  }
}

TEST_F(ForwardTest, ConvTbc) {
  const auto y = run(Tbc{}, {Values(36, 1), Values(48, 1), {1, 2, 3, 4}}, stream_)[0];
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t t = i / 8;
    const float taps = t == 0 || t == 4 ? 3 : 4;
    ASSERT_EQ(y[i], taps * 3 + static_cast<float>(i % 4 + 1)) << i;
  }
}

TEST_F(ForwardTest, AveragePooling) {
  P2 call;
  call.self.shape = {1, 1, 4, 4};
  call.out.shape = {1, 1, 2, 2};
  Values x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  EXPECT_EQ(run(call, {x}, stream_)[0], (Values{2.5, 4.5, 10.5, 12.5}));
  call.divisor_override = 2;
  EXPECT_EQ(run(call, {x}, stream_)[0], (Values{5, 9, 21, 25}));
  P3 volume;
  EXPECT_EQ(run(volume, {Values(2 * 2 * 6 * 4, 3)}, stream_)[0], Values(12, 3));
}

// aclSetInputTensorAddr counts a bias that is not there, too.
TEST_F(ForwardTest, AddressesCanBeSetByTheirNumbers) {
  Conv call;
  call.bias.null = true;
  Handles handles;
  const PhaseOne plan = call.phase_one();
  ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(plan.executor), ACLNN_SUCCESS);
  const DeviceBlock input(encode(ACL_FLOAT, Values(2 * 3 * 64, 1))),
      weight(encode(ACL_FLOAT, Values(108, 1)));
  const DeviceBlock output(2 * 4 * 36 * sizeof(float)), workspace(plan.workspace_size);
  EXPECT_EQ(aclSetInputTensorAddr(plan.executor, 0, handles.tensor(call.input), input.get()), ACLNN_SUCCESS);
  EXPECT_EQ(aclSetInputTensorAddr(plan.executor, 1, handles.tensor(call.weight), weight.get()),
            ACLNN_SUCCESS);
  EXPECT_EQ(aclSetOutputTensorAddr(plan.executor, 0, handles.tensor(call.output), output.get()),
            ACLNN_SUCCESS);
  EXPECT_EQ(aclnnConvolution(workspace.get(), plan.workspace_size, plan.executor, stream_), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(decode(ACL_FLOAT, output.bytes()), Values(2 * 4 * 36, 27));
  EXPECT_EQ(aclDestroyAclOpExecutor(plan.executor), ACLNN_SUCCESS);
}

TEST_F(ForwardTest, DataThatIsMissingIsNamed) {
  const PhaseOne plan = Conv{}.phase_one();
  ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
  const DeviceBlock workspace(plan.workspace_size);
  EXPECT_TRUE(failed_with(aclnnConvolution(workspace.get(), plan.workspace_size, plan.executor, stream_),
                          kNull, {"has no data"}));
}

}  // namespace
}  // namespace retrograd::acl_test::forward_rules_test
