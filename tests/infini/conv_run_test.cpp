// SPDX-License-Identifier: Apache-2.0
// infiniopConvBackward at work: skipped gradients, layouts, workspaces, widths of attributes, threads.
#include <gtest/gtest.h>

#include <thread>

#include "infini/client.h"
#include "infini/formulas.h"
#include "infini/guarded_page.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

constexpr const char* kRun = "infiniopConvBackward";

// A convolution with its data: small integers, so that every result is exact.
struct Conv {
  explicit Conv(const ConvCall& from)
      : call(from), grad_output(call.grad_output), input(call.input), weight(call.weight) {
    grad_output.fill(small_integer);
    input.fill([](size_t i) { return small_integer(i + 3); });
    weight.fill([](size_t i) { return small_integer(i + 5); });
    const ConvFormula formula{
        call.input.shape,   call.weight.shape,       call.grad_output.shape,      axes(call.strides, 1),
        axes(call.pads, 0), axes(call.dilations, 1), static_cast<int64_t>(call.n)};
    expected = gradients(formula, grad_output.values(), input.values(), weight.values());
  }

  ConvCall call;
  Tensor grad_output, input, weight;
  ConvGradients expected;
};

infiniStatus_t run(struct InfiniopDescriptor* descriptor, const Conv& conv, void* grad_input,
                   void* grad_weight, void* grad_bias, void* stream = nullptr) {
  size_t bytes = 0;
  EXPECT_EQ(infiniopGetConvBackwardWorkspaceSize(descriptor, &bytes), INFINI_STATUS_SUCCESS);
  std::vector<char> workspace(bytes + 1, 'g');
  // One byte off whatever malloc gives: the workspace may be aligned anyhow.
  const infiniStatus_t status =
      infiniopConvBackward(descriptor, workspace.data() + 1, bytes, grad_input, grad_weight, grad_bias,
                           conv.grad_output.data(), conv.input.data(), conv.weight.data(), stream);
  EXPECT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
  return status;
}

// Runs the operator into garbage and expects the exact gradients.
void expect_right(struct InfiniopDescriptor* descriptor, const Conv& conv, void* stream = nullptr) {
  Tensor grad_input(conv.call.input), grad_weight(conv.call.weight);
  Tensor grad_bias(View{{conv.call.grad_output.shape[1]}, {}, conv.call.grad_output.dtype});
  ASSERT_EQ(run(descriptor, conv, grad_input.data(), grad_weight.data(), grad_bias.data(), stream),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  EXPECT_EQ(grad_input.values(), conv.expected.input);
  EXPECT_EQ(grad_weight.values(), conv.expected.weight);
  EXPECT_EQ(grad_bias.values(), conv.expected.bias);
}

void expect_right(const ConvCall& call) {
  const Conv conv(call);
  const Operator descriptor = make(call);
  ASSERT_NE(descriptor.get(), nullptr);
  expect_right(descriptor.get(), conv);
}

// grad_bias sums 8·64·64 elements of two channels: the sums are cut, and need a workspace.
ConvCall call_with_workspace() {
  return ConvCall{{{8, 2, 64, 64}}, {{8, 1, 64, 64}}, {{2, 1, 1, 1}}, View{{2}}, {0, 0}, {1, 1}, {1, 1}, 1};
}

TEST(ConvBackward, OverwritesGarbageAndUsesNothingOfTheCreateCall) {
  const ConvCall call;
  const Conv conv(call);
  const Operator descriptor = make(call);  // its descriptors, handle and arrays are gone
  for (int i = 0; i < 3; ++i) expect_right(descriptor.get(), conv);
}

TEST(ConvBackward, SkipsNullGradients) {
  const ConvCall call;
  const Conv conv(call);
  const Operator descriptor = make(call);
  for (int mask = 0; mask < 8; ++mask) {
    SCOPED_TRACE(testing::Message() << "mask " << mask);
    Tensor grad_input(call.input), grad_weight(call.weight), grad_bias(*call.bias);
    ASSERT_EQ(run(descriptor.get(), conv, mask & 1 ? grad_input.data() : nullptr,
                  mask & 2 ? grad_weight.data() : nullptr, mask & 4 ? grad_bias.data() : nullptr),
              INFINI_STATUS_SUCCESS);
    EXPECT_EQ(grad_input.values(), mask & 1 ? conv.expected.input : Tensor(call.input).values());
    EXPECT_EQ(grad_weight.values(), mask & 2 ? conv.expected.weight : Tensor(call.weight).values());
    EXPECT_EQ(grad_bias.values(), mask & 4 ? conv.expected.bias : Tensor(*call.bias).values());
  }
}

TEST(ConvBackward, ComputesGradBiasThoughTheBiasDescriptorWasNull) {
  ConvCall call;
  call.bias.reset();
  expect_right(call);
}

TEST(ConvBackward, IgnoresTheStridesOfTheBias) {
  ConvCall call;
  call.bias->strides = {0};
  expect_right(call);
}

TEST(ConvBackward, NeedsTheOperandsOfWhatIsAskedFor) {
  const ConvCall call;
  const Operator descriptor = make(call);
  Tensor y(call.grad_output), x(call.input), w(call.weight), b(*call.bias);
  Tensor grad_input(call.input), grad_weight(call.weight);
  const auto refused = [&](void* gx, void* gw, void* gb, void* gy, void* in, void* weight, const char* what) {
    expect_refused(infiniopConvBackward(descriptor.get(), room().data(), room().size(), gx, gw, gb, gy, in,
                                        weight, nullptr),
                   INFINI_STATUS_BAD_PARAM, kRun, {what, "null"});
  };
  refused(grad_input.data(), nullptr, nullptr, nullptr, x.data(), w.data(), "grad_output");
  refused(nullptr, grad_weight.data(), nullptr, nullptr, x.data(), w.data(), "grad_output");
  refused(nullptr, nullptr, b.data(), nullptr, x.data(), w.data(), "grad_output");
  refused(nullptr, nullptr, nullptr, nullptr, x.data(), w.data(), "grad_output");
  refused(grad_input.data(), nullptr, nullptr, y.data(), x.data(), nullptr, "weight");
  refused(nullptr, grad_weight.data(), nullptr, y.data(), nullptr, w.data(), "input");
}

TEST(ConvBackward, DoesNotNeedTheOperandsOfWhatIsSkipped) {
  const ConvCall call;
  const Conv conv(call);
  const Operator descriptor = make(call);
  Tensor grad_input(call.input), grad_weight(call.weight), grad_bias(*call.bias);
  const void* y = conv.grad_output.data();
  EXPECT_EQ(infiniopConvBackward(descriptor.get(), room().data(), room().size(), grad_input.data(), nullptr,
                                 nullptr, y, nullptr, conv.weight.data(), nullptr),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopConvBackward(descriptor.get(), room().data(), room().size(), nullptr, grad_weight.data(),
                                 nullptr, y, conv.input.data(), nullptr, nullptr),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopConvBackward(descriptor.get(), room().data(), room().size(), nullptr, nullptr,
                                 grad_bias.data(), y, nullptr, nullptr, nullptr),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(grad_input.values(), conv.expected.input);
  EXPECT_EQ(grad_weight.values(), conv.expected.weight);
  EXPECT_EQ(grad_bias.values(), conv.expected.bias);
}

TEST(ConvBackward, RefusesAWorkspaceThatIsNullOrOneByteShort) {
  const ConvCall call = call_with_workspace();
  const Conv conv(call);
  const Operator descriptor = make(call);
  size_t bytes = 0;
  ASSERT_EQ(infiniopGetConvBackwardWorkspaceSize(descriptor.get(), &bytes), INFINI_STATUS_SUCCESS);
  ASSERT_GT(bytes, 0u);
  std::vector<char> workspace(bytes);
  Tensor grad_bias(*call.bias);
  const std::vector<double> garbage = grad_bias.values();
  const auto with = [&](void* address, size_t size) {
    return infiniopConvBackward(descriptor.get(), address, size, nullptr, nullptr, grad_bias.data(),
                                conv.grad_output.data(), nullptr, nullptr, nullptr);
  };
  const std::string needed = std::to_string(bytes) + " bytes";
  expect_refused(with(nullptr, bytes), INFINI_STATUS_INSUFFICIENT_WORKSPACE, kRun,
                 {"workspace is null", needed.c_str()});
  const std::string given = " has " + std::to_string(bytes - 1);
  expect_refused(with(workspace.data(), bytes - 1), INFINI_STATUS_INSUFFICIENT_WORKSPACE, kRun,
                 {given.c_str(), needed.c_str()});
  EXPECT_EQ(grad_bias.values(), garbage) << "a refused run writes nothing";
  expect_right(descriptor.get(), conv);
}

TEST(ConvBackward, RefusesStreamsThatAreNone) {
  const ConvCall call;
  const Conv conv(call);
  const Operator descriptor = make(call);
  Tensor grad_bias(*call.bias);
  infinirtStream_t dead = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&dead), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtStreamDestroy(dead), INFINI_STATUS_SUCCESS);
  int foreign = 0;
  for (void* stream : {dead, static_cast<void*>(&foreign), reinterpret_cast<void*>(uintptr_t{1})})
    expect_refused(infiniopConvBackward(descriptor.get(), room().data(), room().size(), nullptr, nullptr,
                                        grad_bias.data(), conv.grad_output.data(), nullptr, nullptr, stream),
                   INFINI_STATUS_BAD_PARAM, kRun, {"stream is", "expected null or a live stream"});
}

TEST(ConvBackward, RefusesBlocksOfOursThatAreTooSmall) {
  const ConvCall call;
  const Conv conv(call);
  const Operator descriptor = make(call);
  void* small = nullptr;
  ASSERT_EQ(infinirtMalloc(&small, 5 * sizeof(float)), INFINI_STATUS_SUCCESS);
  expect_refused(infiniopConvBackward(descriptor.get(), room().data(), room().size(), nullptr, nullptr, small,
                                      conv.grad_output.data(), nullptr, nullptr, nullptr),
                 INFINI_STATUS_BAD_PARAM, kRun, {"grad_bias", "0 to 23", "20"});
  EXPECT_EQ(infinirtFree(small), INFINI_STATUS_SUCCESS);
}

TEST(ConvBackward, ServesEveryLayout) {
  ConvCall call;
  call.grad_output.strides = channels_last_strides(call.grad_output.shape);
  call.input.strides = channels_last_strides(call.input.shape);
  call.weight.strides = channels_last_strides(call.weight.shape);
  expect_right(call);

  call = ConvCall{};
  call.input.strides = {-1000, 200, -20, 2};  // reversed, with gaps that must stay as they are
  call.weight.strides = {36, -9, 3, -1};
  call.grad_output.strides = {-384, 64, 8, -1};
  expect_right(call);

  call = ConvCall{};
  call.grad_output.strides = {0, 0, 0, 0};  // the gradient of a sum
  expect_right(call);
}

TEST(ConvBackward, LeavesTheGapsOfAStridedGradientAlone) {
  ConvCall call;
  call.input.strides = {800, 200, 20, 2};
  const Conv conv(call);
  const Operator descriptor = make(call);
  View all = call.input;
  all.shape[3] = 20;
  all.strides = {};
  Tensor storage(all);
  storage.fill([](size_t) { return 1000; });
  ASSERT_EQ(run(descriptor.get(), conv, storage.data(), nullptr, nullptr), INFINI_STATUS_SUCCESS);
  for (size_t i = 0; i < storage.count(); ++i)
    ASSERT_EQ(storage.at(i), i % 2 == 0 ? conv.expected.input[i / 2] : 1000) << i;
}

TEST(ConvBackward, ServesAllTypesWithExactDataBitForBit) {
  for (infiniDtype_t dtype : {INFINI_DTYPE_F16, INFINI_DTYPE_F32, INFINI_DTYPE_BF16}) {
    ConvCall call{{{1, 2, 3}}, {{1, 1, 4}}, {{2, 1, 2}}, View{{2}}, {0}, {1}, {1}, 1};
    for (View* view : {&call.grad_output, &call.input, &call.weight, &*call.bias}) view->dtype = dtype;
    expect_right(call);
  }
}

TEST(ConvBackward, DefaultsNullAttributesTo0And1And1) {
  ConvCall defaults;
  defaults.pads = defaults.strides = defaults.dilations = {};
  const Conv conv{ConvCall{}};
  const Operator descriptor = make(defaults);
  expect_right(descriptor.get(), conv);
}

// Attributes of either width at the very end of a page: nothing behind them is read.
class ConvAttributes : public testing::Test {
 protected:
  struct Lists {
    std::vector<int> pads, strides, dilations;
  };
  template <class T>
  void expect_read(const ConvCall& call, const Lists& given) {
    const Conv conv(call);
    const Handle handle;
    const TensorDescriptor y(call.grad_output), x(call.input), w(call.weight);
    infiniopConvBackwardDescriptor_t descriptor = nullptr;
    ASSERT_EQ(infiniopCreateConvBackwardDescriptor(
                  handle.get(), &descriptor, y.get(), x.get(), w.get(), nullptr, place<T>(0, given.pads),
                  place<T>(1, given.strides), place<T>(2, given.dilations), call.n),
              INFINI_STATUS_SUCCESS)
        << retrogradGetLastError();
    const Operator destroyer(descriptor, infiniopDestroyConvBackwardDescriptor);
    expect_right(descriptor, conv);
  }
  template <class T>
  void expect_read(const ConvCall& call) {
    expect_read<T>(call, {call.pads, call.strides, call.dilations});
  }

 private:
  template <class T>
  void* place(size_t page, const std::vector<int>& values) {
    if (values.empty()) return nullptr;
    return pages_[page].at_end(std::vector<T>(values.begin(), values.end()));
  }
  GuardedPage pages_[3];
};

const ConvCall kConv1d{{{1, 2, 5}}, {{1, 1, 8}}, {{2, 1, 3}}, std::nullopt, {2}, {2}, {1}, 1};
const ConvCall kConv2d{{{1, 2, 5, 4}}, {{1, 1, 8, 9}}, {{2, 1, 3, 2}}, std::nullopt,
                       {2, 0},         {2, 2},         {1, 2},         1};
const ConvCall kConv3d{{{1, 1, 2, 5, 4}}, {{1, 1, 3, 8, 9}}, {{1, 1, 2, 3, 2}}, std::nullopt,
                       {0, 2, 0},         {1, 2, 2},         {1, 1, 2},         1};

TEST_F(ConvAttributes, Of32BitsAreReadToTheirEndAndNoFurther) {
  for (const ConvCall& call : {kConv1d, kConv2d, kConv3d}) expect_read<int32_t>(call);
}

TEST_F(ConvAttributes, Of64BitsAreReadToTheirEndAndNoFurther) {
  for (const ConvCall& call : {kConv1d, kConv2d, kConv3d}) expect_read<int64_t>(call);
}

TEST_F(ConvAttributes, PadsFollowTheWidthThatTheOthersShow) {
  ConvCall call = kConv2d;
  call.dilations = {1, 1};
  call.grad_output.shape = {1, 2, 5, 4};
  expect_read<int64_t>(call, {call.pads, call.strides, {}});
  expect_read<int32_t>(call, {call.pads, call.strides, {}});
  call = ConvCall{{{1, 2, 6, 10}}, {{1, 1, 8, 9}}, {{2, 1, 3, 2}}, std::nullopt, {0, 1}, {1, 1}, {1, 1}, 1};
  expect_read<int64_t>(call, {call.pads, {}, call.dilations});
  expect_read<int32_t>(call, {call.pads, {}, {}});
}

TEST(ConvBackwardOnStreams, EightThreadsShareOneDescriptor) {
  constexpr int kThreads = 8, kRuns = 5;
  const ConvCall call = call_with_workspace();
  const Conv conv(call);
  const Operator descriptor = make(call);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      infinirtStream_t stream = nullptr;
      ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
      for (int i = 0; i < kRuns; ++i) expect_right(descriptor.get(), conv, stream);
      EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(ConvBackwardOnStreams, MayBeDestroyedWhileItsWorkIsPending) {
  const ConvCall call;
  const Conv conv(call);
  infinirtStream_t stream = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  std::vector<Tensor> results(20, Tensor(call.input));
  for (Tensor& result : results) {
    const Operator descriptor = make(call);
    ASSERT_EQ(infiniopConvBackward(descriptor.get(), room().data(), room().size(), result.data(), nullptr,
                                   nullptr, conv.grad_output.data(), nullptr, conv.weight.data(), stream),
              INFINI_STATUS_SUCCESS);
  }
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS) << "finishes the work first";
  for (const Tensor& result : results) EXPECT_EQ(result.values(), conv.expected.input);
}

}  // namespace
}  // namespace retrograd::infini_test
