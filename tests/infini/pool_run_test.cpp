// SPDX-License-Identifier: Apache-2.0
// infiniopAvgPoolBackward at work: overhanging windows, layouts, widths of attributes, bad arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "infini/client.h"
#include "infini/formulas.h"
#include "infini/guarded_page.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test::pool_run_test {
namespace {

constexpr const char* kRun = "infiniopAvgPoolBackward";

Axes to_axes(const std::vector<size_t>& values, int64_t fill) {
  return axes(std::vector<int>(values.begin(), values.end()), fill);
}

std::vector<double> expected_of(const PoolCall& call, const Tensor& grad_output) {
  return grad_input({call.input.shape, call.grad_output.shape, to_axes(call.kernel_size, 1),
                     to_axes(call.strides, 1), to_axes(call.pads, 0)},
                    grad_output.values());
}

// Divisors are powers of two and the data small integers in the calls below, so results are exact.
void expect_right(struct InfiniopDescriptor* descriptor, const PoolCall& call) {
  Tensor grad_output(call.grad_output), result(call.grad_input);
  grad_output.fill(small_integer);
  ASSERT_EQ(infiniopAvgPoolBackward(descriptor, room().data(), room().size(), result.data(),
                                    grad_output.data(), nullptr, nullptr),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  EXPECT_EQ(result.values(), expected_of(call, grad_output));
}

void expect_right(const PoolCall& call) {
  const Operator descriptor = make(call);
  ASSERT_NE(descriptor.get(), nullptr);
  expect_right(descriptor.get(), call);
}

TEST(AvgPoolBackward, DividesAnOverhangingWindowByWhatIsLeftOfIt) {
  const PoolCall call{{{1, 1, 5}}, {{1, 1, 3}}, {{1, 1, 5}}, {2}, {2}, {0}, true};
  const Operator descriptor = make(call);
  Tensor grad_output(call.grad_output), result(call.grad_input);
  grad_output.fill([](size_t) { return 1; });
  ASSERT_EQ(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), result.data(),
                                    grad_output.data(), nullptr, nullptr),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result.values(), (std::vector<double>{0.5, 0.5, 0.5, 0.5, 1.0}));
}

// The uncorrected size has a window that starts beyond the input: it contributes nothing, not even 0 · NaN.
TEST(AvgPoolBackward, IgnoresWindowsThatStartBeyondTheInput) {
  const PoolCall call{{{1, 1, 5}}, {{1, 1, 3}}, {{1, 1, 5}}, {1}, {3}, {0}, true};
  const Operator descriptor = make(call);
  Tensor grad_output(call.grad_output), result(call.grad_input);
  grad_output.set(0, 2);
  grad_output.set(1, 3);
  grad_output.set(2, std::numeric_limits<double>::quiet_NaN());
  ASSERT_EQ(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), result.data(),
                                    grad_output.data(), nullptr, nullptr),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result.values(), (std::vector<double>{2, 0, 0, 3, 0}));
}

TEST(AvgPoolBackward, CountsPaddingAndOverwritesGarbage) {
  expect_right({{{2, 3, 8, 8}}, {{2, 3, 5, 5}}, {{2, 3, 8, 8}}, {2, 2}, {2, 2}, {1, 1}, false});
}

TEST(AvgPoolBackward, ZeroesPositionsThatNoWindowTouches) {
  expect_right({{{1, 2, 9}}, {{1, 2, 3}}, {{1, 2, 9}}, {1}, {4}, {0}, false});
}

TEST(AvgPoolBackward, ServesEveryLayoutAndType) {
  for (infiniDtype_t dtype : {INFINI_DTYPE_F16, INFINI_DTYPE_F32, INFINI_DTYPE_BF16}) {
    PoolCall call;
    for (View* view : {&call.grad_input, &call.grad_output, &call.input}) view->dtype = dtype;
    expect_right(call);
    call.grad_input.strides = channels_last_strides(call.grad_input.shape);
    call.grad_output.strides = {-48, 16, -4, 1};
    call.input.strides = {0, 0, 0, 0};  // not read: anything goes
    expect_right(call);
    call.grad_input.strides = {400, -130, 16, -2};
    call.grad_output.strides = {0, 1, 0, 0};
    expect_right(call);
  }
}

TEST(AvgPoolBackward, NeedsItsTensorsButNotTheInput) {
  const PoolCall call;
  const Operator descriptor = make(call);
  Tensor grad_output(call.grad_output), result(call.grad_input);
  expect_refused(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), nullptr,
                                         grad_output.data(), result.data(), nullptr),
                 INFINI_STATUS_BAD_PARAM, kRun, {"grad_input is null"});
  expect_refused(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), result.data(),
                                         nullptr, result.data(), nullptr),
                 INFINI_STATUS_BAD_PARAM, kRun, {"grad_output is null"});
  int foreign = 0;
  expect_refused(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), result.data(),
                                         grad_output.data(), nullptr, &foreign),
                 INFINI_STATUS_BAD_PARAM, kRun, {"stream is", "live stream"});
}

TEST(AvgPoolBackward, OfNoElementsNeedsNoData) {
  PoolCall call;
  for (View* view : {&call.grad_input, &call.grad_output, &call.input}) view->shape[0] = 0;
  const Operator descriptor = make(call);
  EXPECT_EQ(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), nullptr, nullptr, nullptr,
                                    nullptr),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
}

TEST(AvgPoolBackward, RunsOnAStream) {
  const PoolCall call;
  const Operator descriptor = make(call);
  infinirtStream_t stream = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  Tensor grad_output(call.grad_output), result(call.grad_input);
  grad_output.fill(small_integer);
  EXPECT_EQ(infiniopAvgPoolBackward(descriptor.get(), room().data(), room().size(), result.data(),
                                    grad_output.data(), nullptr, stream),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result.values(), expected_of(call, grad_output));
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
}

class PoolAttributes : public testing::Test {
 protected:
  template <class T>
  void expect_read(const PoolCall& call, bool strides_are_null = false) {
    const Handle handle;
    const TensorDescriptor gx(call.grad_input), gy(call.grad_output), x(call.input);
    infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
    ASSERT_EQ(infiniopCreateAvgPoolBackwardDescriptor(handle.get(), &descriptor, gx.get(), gy.get(), x.get(),
                                                      place<T>(0, call.kernel_size),
                                                      strides_are_null ? nullptr : place<T>(1, call.strides),
                                                      place<T>(2, call.pads), call.ceil_mode),
              INFINI_STATUS_SUCCESS)
        << retrogradGetLastError();
    const Operator destroyer(descriptor, infiniopDestroyAvgPoolBackwardDescriptor);
    expect_right(descriptor, call);
  }

 private:
  template <class T>
  void* place(size_t page, const std::vector<size_t>& values) {
    return pages_[page].at_end(std::vector<T>(values.begin(), values.end()));
  }
  GuardedPage pages_[3];
};

const PoolCall kPool1d{{{1, 2, 8}}, {{1, 2, 3}}, {{1, 2, 8}}, {4}, {3}, {1}, false};
const PoolCall kPool2d{{{1, 2, 8, 9}}, {{1, 2, 3, 4}}, {{1, 2, 8, 9}}, {4, 2}, {3, 2}, {1, 0}, false};
const PoolCall kPool3d{
    {{1, 1, 3, 8, 9}}, {{1, 1, 2, 3, 4}}, {{1, 1, 3, 8, 9}}, {2, 4, 2}, {1, 3, 2}, {0, 1, 0}, false};

TEST_F(PoolAttributes, Of64BitsAreReadToTheirEndAndNoFurther) {
  for (const PoolCall& call : {kPool1d, kPool2d, kPool3d}) expect_read<size_t>(call);
}

TEST_F(PoolAttributes, Of32BitsAreReadToTheirEndAndNoFurther) {
  for (const PoolCall& call : {kPool1d, kPool2d, kPool3d}) expect_read<int32_t>(call);
}

TEST_F(PoolAttributes, NullStridesAreTheKernel) {
  PoolCall call;
  call.strides = call.kernel_size;
  expect_read<size_t>(call, true);
  expect_read<int32_t>(call, true);
}

TEST_F(PoolAttributes, NullPadsAreZero) {
  PoolCall call;
  call.pads.clear();
  const Operator descriptor = make(call);
  call.pads = {0, 0};
  expect_right(descriptor.get(), call);
}

}  // namespace
}  // namespace retrograd::infini_test::pool_run_test
