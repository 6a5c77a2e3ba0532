// SPDX-License-Identifier: Apache-2.0
// Gradients worked out by hand, through both phases of the C interface.
#include <cmath>
#include <limits>

#include "run_call.h"

namespace retrograd::acl_test {
namespace {

Values ones(const TensorArg& tensor) { return Values(static_cast<size_t>(count_of(tensor.shape)), 1.0f); }
Values filled(const TensorArg& tensor, float value) {
  return Values(static_cast<size_t>(count_of(tensor.shape)), value);
}

class Gradients : public AclTest {};

TEST_F(Gradients, OfTheConvolutionSampleAre2And98And98) {
  ConvCall call;
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {2, 2, 7, 7};
  call.weight.shape = call.grad_weight.shape = {2, 2, 1, 1};
  call.grad_bias.shape = {2};
  call.bias_sizes = {2};
  call.cube_math_type = 1;
  const auto out = run(call, {ones(call.grad_output), ones(call.input), ones(call.weight)}, stream_);
  EXPECT_EQ(out[0], filled(call.grad_input, 2));
  EXPECT_EQ(out[1], filled(call.grad_weight, 98));
  EXPECT_EQ(out[2], filled(call.grad_bias, 98));
}

TEST_F(Gradients, OfTheTbcSampleAre2And5And5) {
  TbcCall call;
  call.self.shape = call.input.shape = call.grad_input.shape = {5, 1, 2};
  call.weight.shape = call.grad_weight.shape = {1, 2, 2};
  call.bias.shape = call.grad_bias.shape = {2};
  call.pad = 0;
  call.cube_math_type = 1;
  const auto out = run(call, {ones(call.self), ones(call.input), ones(call.weight)}, stream_);
  EXPECT_EQ(out[0], filled(call.grad_input, 2));
  EXPECT_EQ(out[1], filled(call.grad_weight, 5));
  EXPECT_EQ(out[2], filled(call.grad_bias, 5));
}

// Exact data, exact results: Winograd would print 575.9995 here, and is an option.
TEST_F(Gradients, OfOnesAreWholeNumbersWhereReducedPrecisionIsAllowed) {
  ConvCall call;
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 64, 14, 14};
  call.weight.shape = call.grad_weight.shape = {64, 64, 3, 3};
  call.grad_bias.shape = {64};
  call.bias_sizes = {64};
  call.padding = {1, 1};
  call.cube_math_type = 1;
  const auto out = run(call, {ones(call.grad_output), ones(call.input), ones(call.weight)}, stream_);
  for (size_t y = 1; y < 13; ++y)
    for (size_t x = 1; x < 13; ++x) ASSERT_EQ(out[0][y * 14 + x], 64 * 9);
  for (size_t i = 0; i < out[1].size(); i += 9) {
    ASSERT_EQ(out[1][i], 13 * 13);
    ASSERT_EQ(out[1][i + 4], 14 * 14);
  }
}

// x = [1 2 3 4], w = [1 2], dy = [1 10 100]: dx = dy ∗ w, dw[t] = Σ x[o+t]·dy[o].
ConvCall one_dimensional() {
  ConvCall call;
  call.grad_output.shape = {1, 1, 3};
  call.input.shape = call.grad_input.shape = {1, 1, 4};
  call.weight.shape = call.grad_weight.shape = {1, 1, 2};
  call.grad_bias.shape = {1};
  call.bias_sizes = call.stride = call.dilation = {1};
  call.padding = call.output_padding = {0};
  return call;
}

TEST_F(Gradients, OfAOneDimensionalConvolution) {
  const auto out = run(one_dimensional(), {{1, 10, 100}, {1, 2, 3, 4}, {1, 2}}, stream_);
  EXPECT_EQ(out[0], (Values{1, 12, 120, 200}));
  EXPECT_EQ(out[1], (Values{321, 432}));
  EXPECT_EQ(out[2], (Values{111}));
}

TEST_F(Gradients, OfAStridedPaddedTwoDimensionalConvolution) {
  // 3x3 input, 2x2 kernel, stride 2, one row of padding on top and one column on the left.
  ConvCall call;
  call.grad_output.shape = {1, 1, 2, 2};
  call.input.shape = call.grad_input.shape = {1, 1, 3, 3};
  call.weight.shape = call.grad_weight.shape = {1, 1, 2, 2};
  call.grad_bias.shape = {1};
  call.bias_sizes = {1};
  call.stride = {2, 2};
  call.padding = {1, 0, 1, 0};
  const auto out = run(call, {{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 10, 100, 1000}}, stream_);
  EXPECT_EQ(out[0], (Values{1000, 200, 2000, 30, 4, 40, 3000, 400, 4000}));
  EXPECT_EQ(out[1], (Values{4 * 5, 3 * 4 + 4 * 6, 2 * 2 + 4 * 8, 1 + 2 * 3 + 3 * 7 + 4 * 9}));
  EXPECT_EQ(out[2], (Values{10}));
}

TEST_F(Gradients, OfAThreeDimensionalConvolution) {
  ConvCall call;
  call.grad_output.shape = {1, 1, 1, 1, 2};
  call.input.shape = call.grad_input.shape = {1, 1, 1, 2, 3};
  call.weight.shape = call.grad_weight.shape = {1, 1, 1, 2, 2};
  call.grad_bias.shape = {1};
  call.bias_sizes = {1};
  call.stride = call.dilation = {1, 1, 1};
  call.padding = call.output_padding = {0, 0, 0};
  const auto out = run(call, {{1, 10}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}}, stream_);
  EXPECT_EQ(out[0], (Values{1, 12, 20, 3, 34, 40}));
  EXPECT_EQ(out[1], (Values{21, 32, 54, 65}));
  EXPECT_EQ(out[2], (Values{11}));
}

TEST_F(Gradients, OfATransposedConvolutionWithOutputPadding) {
  // x = [1 2], w = [1 10], stride 2, output padding 1: y has (2−1)·2 + 2 + 1 = 5 places, the last touched by
  // nothing.
  ConvCall call = one_dimensional();
  call.transposed = true;
  call.grad_output.shape = {1, 1, 5};
  call.input.shape = call.grad_input.shape = {1, 1, 2};
  call.stride = {2};
  call.output_padding = {1};
  const auto out = run(call, {{1, 2, 3, 4, 5}, {1, 2}, {1, 10}}, stream_);
  EXPECT_EQ(out[0], (Values{1 + 20, 3 + 40}));
  EXPECT_EQ(out[1], (Values{1 + 2 * 3, 2 + 2 * 4}));
  EXPECT_EQ(out[2], (Values{15}));
}

TEST_F(Gradients, OfAGroupedConvolution) {
  ConvCall call;
  call.grad_output.shape = {1, 2, 1, 2};
  call.input.shape = call.grad_input.shape = {1, 2, 1, 2};
  call.weight.shape = call.grad_weight.shape = {2, 1, 1, 1};
  call.grad_bias.shape = {2};
  call.bias_sizes = {2};
  call.groups = 2;
  const auto out = run(call, {{1, 2, 3, 4}, {5, 6, 7, 8}, {10, 100}}, stream_);
  EXPECT_EQ(out[0], (Values{10, 20, 300, 400}));
  EXPECT_EQ(out[1], (Values{5 + 12, 21 + 32}));
  EXPECT_EQ(out[2], (Values{3, 7}));
}

TEST_F(Gradients, OfConvTbc) {
  // T 3 with one place of padding on both sides, B 1, C_in 1, C_out 2, K 2: T_out = 3 + 2 − 2 + 1 = 4.
  TbcCall call;
  call.self.shape = {4, 1, 2};
  call.input.shape = call.grad_input.shape = {3, 1, 1};
  call.weight.shape = call.grad_weight.shape = {2, 1, 2};
  call.bias.shape = call.grad_bias.shape = {2};
  const auto out = run(call, {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 10, 100}, {1, 2, 3, 4}}, stream_);
  // dx[t] = Σ_o dy[t+1,o]·w[0,o] + dy[t,o]·w[1,o]
  EXPECT_EQ(out[0], (Values{3 + 8 + 3 + 8, 5 + 12 + 9 + 16, 7 + 16 + 15 + 24}));
  EXPECT_EQ(out[1], (Values{3 + 50 + 700, 4 + 60 + 800, 1 + 30 + 500, 2 + 40 + 600}));
  EXPECT_EQ(out[2], (Values{16, 20}));
}

// Rounded once, from FP32: 7.8125 is between two codes of either type.
TEST_F(Gradients, OfConvTbcHave8BitWeightsWhereAskedFor) {
  TbcCall call;
  call.self.shape = {1, 1, 4};
  call.input.shape = call.grad_input.shape = {1, 1, 1};
  call.weight.shape = call.grad_weight.shape = {1, 1, 4};
  call.pad = 0;
  for (const aclDataType type : {ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN}) {
    call.grad_weight.dtype = type;
    for (const aclDataType inputs : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
      for (TensorArg* tensor : call.inputs()) tensor->dtype = inputs;
      EXPECT_EQ(run(call, {{1, 2, 4, -1}, {1}, {1, 1, 1, 1}}, stream_)[1], (Values{1, 2, 4, -1}));
      EXPECT_EQ(run(call, {{5, 0, 0, 0}, {1.5625f}, {1, 1, 1, 1}}, stream_)[1], (Values{8, 0, 0, 0}));
    }
  }
}

// Without a batch nothing of a transposed convolution is judged but its weight.
TEST_F(Gradients, OfATransposedConvolutionWithoutABatchAreZeros) {
  ConvCall call;
  make_transposed(call);
  call.grad_output.shape = {0, 5, 77, 0};
  call.input.shape = call.grad_input.shape = {0, 3, 0, 1234};
  const auto out = run(call, {{}, {}, ones(call.weight)}, stream_);
  EXPECT_TRUE(out[0].empty());
  EXPECT_EQ(out[1], filled(call.grad_weight, 0));
  EXPECT_EQ(out[2], filled(call.grad_bias, 0));
  call.grad_output.shape = {0, 999, 1, 1};  // its channels neither
  EXPECT_EQ(run(call, {{}, {}, ones(call.weight)}, stream_)[2], filled(call.grad_bias, 0));
}

TEST_F(Gradients, OfAvgPool2dInCeilModeLeaveTheLastWindowToItself) {
  // Width 5, kernel 2, stride 2, ceil: the third window holds one place of the input, and divides by 1.
  Pool2dCall call;
  call.grad_output.shape = {1, 1, 1, 3};
  call.self.shape = call.grad_input.shape = {1, 1, 1, 5};
  call.kernel_size = call.stride = {1, 2};
  call.ceil_mode = true;
  EXPECT_EQ(run(call, {{1, 1, 1}}, stream_)[0], (Values{0.5f, 0.5f, 0.5f, 0.5f, 1.0f}));
}

TEST_F(Gradients, OfAvgPool2dDivideAsTheFlagsSay) {
  // 2x2 input, 2x2 kernel, stride 2, padding 1: four windows, each with one place of the input and three of
  // padding.
  Pool2dCall call;
  call.grad_output.shape = call.self.shape = call.grad_input.shape = {1, 1, 2, 2};
  call.padding = {1};
  EXPECT_EQ(run(call, {{4, 8, 12, 16}}, stream_)[0], (Values{1, 2, 3, 4}));
  call.count_include_pad = false;
  EXPECT_EQ(run(call, {{4, 8, 12, 16}}, stream_)[0], (Values{4, 8, 12, 16}));
  call.divisor_override = 2;
  EXPECT_EQ(run(call, {{4, 8, 12, 16}}, stream_)[0], (Values{2, 4, 6, 8}));
}

TEST_F(Gradients, OfAvgPool3dSpreadEvenly) {
  Pool3dCall call;
  call.grad_output.shape = {1, 1, 1, 1, 2};
  call.self.shape = call.grad_input.shape = {1, 1, 2, 2, 4};
  EXPECT_EQ(run(call, {{8, 16}}, stream_)[0], (Values{1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST_F(Gradients, OfAnEmptyBatchAreZeros) {
  ConvCall call;
  call.grad_output.shape[0] = call.input.shape[0] = call.grad_input.shape[0] = 0;
  const auto out = run(call, {{}, {}, ones(call.weight)}, stream_);
  EXPECT_TRUE(out[0].empty());
  EXPECT_EQ(out[1], filled(call.grad_weight, 0));
  EXPECT_EQ(out[2], filled(call.grad_bias, 0));
}

TEST_F(Gradients, OfNoInputChannelsStillSumTheBias) {
  ConvCall call;
  call.input.shape[1] = call.grad_input.shape[1] = call.weight.shape[1] = call.grad_weight.shape[1] = 0;
  const auto out = run(call, {ones(call.grad_output), {}, {}}, stream_);
  EXPECT_TRUE(out[0].empty());
  EXPECT_TRUE(out[1].empty());
  EXPECT_EQ(out[2], filled(call.grad_bias, 2 * 6 * 6));
}

TEST_F(Gradients, OfAnEmptyTbcBatchAreZeros) {
  TbcCall call;
  call.self.shape[1] = call.input.shape[1] = call.grad_input.shape[1] = 0;
  const auto out = run(call, {{}, {}, ones(call.weight)}, stream_);
  EXPECT_EQ(out[1], filled(call.grad_weight, 0));
  EXPECT_EQ(out[2], filled(call.grad_bias, 0));
}

TEST_F(Gradients, ReadBroadcastAndReversedInputsAndWriteStridedOutputs) {
  ConvCall call = one_dimensional();
  call.grad_output.strides = {0, 0, 0};  // all one element
  call.grad_output.storage = {1};
  call.input.strides = {4, 4, -1};  // backwards
  call.input.offset = 3;
  call.input.storage = {4};
  call.grad_input.strides = {8, 8, 2};  // every second place
  call.grad_input.storage = {8};
  const auto out = run(call, {{5, 5, 5}, {1, 2, 3, 4}, {1, 2}}, stream_);
  EXPECT_EQ(out[0], (Values{5, 15, 15, 10}));
  EXPECT_EQ(out[1], (Values{5 * 6, 5 * 9}));
  EXPECT_EQ(out[2], (Values{15}));
}

TEST_F(Gradients, LeaveTheGapsOfAStridedOutputAlone) {
  ConvCall call = one_dimensional();
  call.mask.values = {1, 0, 0};
  call.grad_input.strides = {8, 8, 2};
  call.grad_input.offset = 1;
  call.grad_input.storage = {8};
  const DeviceBlock dy(encode(ACL_FLOAT, {1, 1, 1})), x(encode(ACL_FLOAT, {1, 1, 1, 1})),
      w(encode(ACL_FLOAT, {1, 1}));
  const DeviceBlock dx(encode(ACL_FLOAT, Values(8, -1)));
  call.grad_output.data = dy.get();
  call.input.data = x.get();
  call.weight.data = w.get();
  call.grad_input.data = dx.get();
  const PhaseOne plan = call.phase_one();
  ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
  const DeviceBlock workspace(static_cast<size_t>(plan.workspace_size));
  ASSERT_EQ(aclnnConvolutionBackward(workspace.get(), plan.workspace_size, plan.executor, stream_),
            ACLNN_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(decode(ACL_FLOAT, dx.bytes()), (Values{-1, 1, -1, 2, -1, 2, -1, 1}));
}

// A single product shows the rounding of both operands. 1 + 2^-12 is no FP16 number (10 bits) and no HF32
// number (11 bits, half away from zero: it becomes 1 + 2^-11).
TEST_F(Gradients, RoundTheirOperandsAsTheMathTypeSays) {
  ConvCall call = one_dimensional();
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 1, 1};
  call.weight.shape = call.grad_weight.shape = {1, 1, 1};
  const float x = 1 + std::ldexp(1.0f, -12);
  const struct {
    int8_t math_type;
    float rounded;
  } kCases[] = {{0, x}, {2, 1.0f}, {3, 1 + std::ldexp(1.0f, -11)}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(int{c.math_type});
    call.cube_math_type = c.math_type;
    const auto out = run(call, {{x}, {x}, {2}}, stream_);
    EXPECT_EQ(out[0], (Values{2 * c.rounded}));
    EXPECT_EQ(out[1], (Values{c.rounded * c.rounded}));
    EXPECT_EQ(out[2], (Values{x})) << "the bias sums the original gradient";
  }
}

TEST_F(Gradients, OverflowToInfinityWhenFp16Overflows) {
  ConvCall call = one_dimensional();
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 1, 1};
  call.weight.shape = call.grad_weight.shape = {1, 1, 1};
  call.cube_math_type = 2;
  const auto out = run(call, {{70000}, {1}, {1}}, stream_);
  EXPECT_EQ(out[0], (Values{std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(out[2], (Values{70000}));
}

TEST_F(Gradients, AreTheSameInEveryTypeThatHoldsTheData) {
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN}) {
    SCOPED_TRACE(dtype);
    ConvCall call = one_dimensional();
    for (TensorArg* tensor : call.inputs()) tensor->dtype = dtype;
    const auto out = run(call, {{1, -2, 1.5f}, {1, 2, 3, 4}, {2, -1}}, stream_);
    EXPECT_EQ(out[0], (Values{2, -5, 5, -1.5f}));
    EXPECT_EQ(out[1], (Values{1 - 4 + 4.5f, 2 - 6 + 6}));
    EXPECT_EQ(out[2], (Values{0.5f}));
  }
}

TEST_F(Gradients, MayBeWrittenInEightBits) {
  for (const aclDataType dtype : {ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN}) {
    SCOPED_TRACE(dtype);
    ConvCall call = one_dimensional();
    for (TensorArg* tensor : call.inputs()) tensor->dtype = dtype;
    call.grad_input.dtype = dtype;
    if (dtype == ACL_HIFLOAT8) call.grad_weight.dtype = dtype;
    const auto out = run(call, {{1, 1, 2}, {1, 2, 1, 1.5f}, {1, 2}}, stream_);
    EXPECT_EQ(out[0], (Values{1, 3, 4, 4}));
    EXPECT_EQ(out[1], (Values{5, 6}));
  }
}

TEST_F(Gradients, OfMixedTypesMeetInFp32AndRoundOnce) {
  ConvCall call = one_dimensional();
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 1, 1};
  call.weight.shape = call.grad_weight.shape = {1, 1, 1};
  call.grad_output.dtype = ACL_FLOAT16;
  call.input.dtype = ACL_BF16;
  // 1 + 2^-10 in FP16 times 1 + 2^-7 in BF16 needs 17 bits: neither type could hold the product.
  const float a = 1 + std::ldexp(1.0f, -10), b = 1 + std::ldexp(1.0f, -7);
  call.grad_bias.dtype = ACL_BF16;
  const auto out = run(call, {{a}, {b}, {a}}, stream_);
  EXPECT_EQ(out[0], (Values{a * a}));
  EXPECT_EQ(out[1], (Values{a * b}));
  EXPECT_EQ(out[2], (Values{1})) << "rounded to the nearest BF16";
}

}  // namespace
}  // namespace retrograd::acl_test
