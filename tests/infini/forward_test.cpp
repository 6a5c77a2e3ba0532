// SPDX-License-Identifier: Apache-2.0
// infiniopConv and infiniopAvgPool: every rule provoked (status, argument, value and rule), what is legal,
// and values.
#include <gtest/gtest.h>

#include <algorithm>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test::forward_test {
namespace {

template <class T>
T* address(std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

// The arguments of infiniopCreateConvDescriptor: at first a legal 3×3 convolution.
struct Conv {
  static constexpr const char* kCreate = "infiniopCreateConvDescriptor";
  View y{{2, 6, 8, 8}}, x{{2, 4, 10, 10}}, w{{6, 4, 3, 3}};
  std::optional<View> b = View{{6}};
  std::vector<int> pads{0, 0}, strides{1, 1}, dilations{1, 1};
  size_t n = 2;

  // Makes the descriptors, calls, and destroys the descriptors and arrays at once.
  infiniStatus_t create(infiniopConvDescriptor_t* out) {
    const Handle handle;
    const TensorDescriptor y_desc(y), x_desc(x), w_desc(w);
    std::optional<TensorDescriptor> b_desc;
    if (b) b_desc.emplace(*b);
    const infiniStatus_t status = infiniopCreateConvDescriptor(
        handle.get(), out, y_desc.get(), x_desc.get(), w_desc.get(), b_desc ? b_desc->get() : nullptr,
        address(pads), address(strides), address(dilations), n);
    for (auto* list : {&pads, &strides, &dilations}) std::fill(list->begin(), list->end(), -1);
    return status;
  }
};

struct Pool {
  static constexpr const char* kCreate = "infiniopCreateAvgPoolDescriptor";
  View output{{2, 3, 4, 4}}, input{{2, 3, 8, 8}};
  std::vector<size_t> kernel_size{2, 2}, strides{2, 2}, pads{0, 0};
  bool ceil_mode = false;

  infiniStatus_t create(infiniopAvgPoolDescriptor_t* out) {
    const Handle handle;
    const TensorDescriptor output_desc(output), input_desc(input);
    return infiniopCreateAvgPoolDescriptor(handle.get(), out, output_desc.get(), input_desc.get(),
                                           address(kernel_size), address(strides), address(pads), ceil_mode);
  }
};

template <class Call>
struct Rule {
  const char* name;
  void (*break_it)(Call&);
  infiniStatus_t status;
  std::vector<std::string> fragments;
};
template <class Call>
void PrintTo(const Rule<Call>& rule, std::ostream* stream) {
  *stream << rule.name;
}

template <class Call>
void expect_rule(const Rule<Call>& rule) {
  Call call;
  rule.break_it(call);
  const auto untouched = reinterpret_cast<struct InfiniopDescriptor*>(&call);
  struct InfiniopDescriptor* descriptor = untouched;
  expect_refused(call.create(&descriptor), rule.status, Call::kCreate, rule.fragments);
  EXPECT_EQ(descriptor, untouched) << "a failing call writes nothing";
}

constexpr auto kParam = INFINI_STATUS_BAD_PARAM, kShape = INFINI_STATUS_BAD_TENSOR_SHAPE,
               kType = INFINI_STATUS_BAD_TENSOR_DTYPE, kStrides = INFINI_STATUS_BAD_TENSOR_STRIDES;

// clang-format off
const Rule<Conv> kConv[] = {
    {"NIsNeitherAxesNorGroups", [](Conv& c) { c.n = 3; }, kParam, {"n is 3, expected 2, the spatial dimensions (or 1, the groups)"}},
    {"StrideZero", [](Conv& c) { c.strides = {1, 0}; }, kParam, {"strides[1] is 0", "at least 1"}},
    {"DilationNegative", [](Conv& c) { c.dilations = {-1, 1}; }, kParam, {"dilations[0] is -1", "at least 1"}},
    {"PadNegative", [](Conv& c) { c.pads = {0, -1}; }, kParam, {"pads[1] is -1", "at least 0"}},
    {"XOfInt", [](Conv& c) { c.x.dtype = INFINI_DTYPE_I32; }, kType, {"x_desc.dtype is 5", "F16 (12), F32 (13) or BF16 (19)"}},
    {"WOfAnotherType", [](Conv& c) { c.w.dtype = INFINI_DTYPE_F16; }, kType, {"dtypes differ (x_desc f32, w_desc f16)", "one type"}},
    {"YOfAnotherType", [](Conv& c) { c.y.dtype = INFINI_DTYPE_BF16; }, kType, {"y_desc.dtype is bf16, expected f32"}},
    {"BOfAnotherType", [](Conv& c) { c.b->dtype = INFINI_DTYPE_F16; }, kType, {"b_desc.dtype is f16, expected f32: one type for all tensors"}},
    {"XOfRank2", [](Conv& c) { c.x.shape = {2, 4}; }, kShape, {"x_desc.shape has rank 2", "3, 4 or 5"}},
    {"WRank", [](Conv& c) { c.w.shape = {6, 4, 3}; }, kShape, {"w_desc.shape has rank 3", "expected 4"}},
    {"YRank", [](Conv& c) { c.y.shape = {2, 6, 64}; }, kShape, {"y_desc.shape has rank 3", "expected 4"}},
    {"BRank", [](Conv& c) { c.b->shape = {6, 1}; }, kShape, {"b_desc.shape has rank 2", "expected 1"}},
    {"BLength", [](Conv& c) { c.b->shape = {5}; }, kShape, {"b_desc.shape[0] is 5, expected 6", "one element for each output channel"}},
    {"Batch", [](Conv& c) { c.y.shape[0] = 3; }, kShape, {"y_desc.shape[0] is 3, expected 2"}},
    {"OutputChannels", [](Conv& c) { c.y.shape[1] = 5; }, kShape, {"y_desc.shape[1] is 5, expected 6"}},
    {"GroupsDoNotDivideChannels", [](Conv& c) { c.w.shape[1] = 3; }, kParam, {"groups is 1", "w_desc.shape[1] (3)", "x_desc.shape[1], which is 4"}},
    {"GroupsDoNotDivideOutputs", [](Conv& c) { c.w.shape = {6, 1, 3, 3}; }, kShape, {"w_desc.shape[0] is 6, expected a multiple of groups = 4"}},
    {"Width", [](Conv& c) { c.y.shape[3] = 9; }, kShape, {"y_desc.shape[3] is 9, expected 8 = floor((10 + 0 + 0 - 1*(3-1) - 1)/1) + 1", "reproduce: retrograd explain \"conv ", "forward=1"}},
    {"KernelDoesNotFit", [](Conv& c) { c.w.shape[2] = 11; }, kShape, {"the kernel does not fit", "y_desc.shape[2]"}},
    {"YOverlapsItself", [](Conv& c) { c.y.strides = {384, 64, 0, 1}; }, kStrides, {"y_desc.strides is 384x64x0x1", "share an address"}},
};
const Rule<Pool> kPool[] = {
    {"KernelNull", [](Pool& c) { c.kernel_size.clear(); }, kParam, {"kernel_size is null"}},
    {"KernelZero", [](Pool& c) { c.kernel_size = {2, 0}; }, kParam, {"kernel_size[1] is 0", "at least 1"}},
    {"StrideZero", [](Pool& c) { c.strides = {2, 0}; }, kParam, {"strides[1] is 0", "at least 1"}},
    {"PadTooLarge", [](Pool& c) { c.pads = {0, 2}; }, kParam, {"pads[1] is 2, expected at most 1: half the kernel of 2"}},
    {"InputOfInt", [](Pool& c) { c.input.dtype = INFINI_DTYPE_I8; }, kType, {"input_desc.dtype is 3"}},
    {"OutputOfAnotherType", [](Pool& c) { c.output.dtype = INFINI_DTYPE_F16; }, kType, {"output_desc.dtype is f16, expected f32: the type of input_desc"}},
    {"InputOfRank2", [](Pool& c) { c.input.shape = {2, 3}; }, kShape, {"input_desc.shape has rank 2", "3, 4 or 5"}},
    {"OutputRank", [](Pool& c) { c.output.shape = {2, 3, 4}; }, kShape, {"output_desc.shape has rank 3"}},
    {"Channels", [](Pool& c) { c.output.shape[1] = 4; }, kShape, {"output_desc.shape[1] is 4, expected 3"}},
    {"Width", [](Pool& c) { c.output.shape[3] = 5; }, kShape, {"output_desc.shape[3] is 5, expected 4 = floor((8 + 2*0 - 2)/2) + 1", "forward=1"}},
    {"OutputOverlapsItself", [](Pool& c) { c.output.strides = {48, 16, 4, 0}; }, kStrides, {"output_desc.strides is 48x16x4x0", "share an address"}},
};
// clang-format on

class ForwardConvRules : public testing::TestWithParam<Rule<Conv>> {};
class ForwardPoolRules : public testing::TestWithParam<Rule<Pool>> {};
TEST_P(ForwardConvRules, AreEnforcedAndExplained) { expect_rule(GetParam()); }
TEST_P(ForwardPoolRules, AreEnforcedAndExplained) { expect_rule(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Infiniop, ForwardConvRules, testing::ValuesIn(kConv),
                         [](const auto& rule) { return std::string(rule.param.name); });
INSTANTIATE_TEST_SUITE_P(Infiniop, ForwardPoolRules, testing::ValuesIn(kPool),
                         [](const auto& rule) { return std::string(rule.param.name); });

Operator make_conv(Conv call) {
  infiniopConvDescriptor_t descriptor = nullptr;
  EXPECT_EQ(call.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  return {descriptor, infiniopDestroyConvDescriptor};
}
Operator make_pool(Pool call) {
  infiniopAvgPoolDescriptor_t descriptor = nullptr;
  EXPECT_EQ(call.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  return {descriptor, infiniopDestroyAvgPoolDescriptor};
}

TEST(ForwardConv, TakesWhatTheRulesAllow) {
  EXPECT_NE(make_conv({}).get(), nullptr);
  Conv call;
  call.n = 1;  // the groups, as ConvBackward has it
  EXPECT_NE(make_conv(call).get(), nullptr);
  call = {};
  call.b.reset();
  EXPECT_NE(make_conv(call).get(), nullptr);
  call = {};
  call.w.shape = {6, 2, 3, 3};  // two groups, as the channels say
  EXPECT_NE(make_conv(call).get(), nullptr);
  call = {};
  call.pads = call.strides = call.dilations = {};  // null: 0, 1, 1
  EXPECT_NE(make_conv(call).get(), nullptr);
}

TEST(ForwardConv, SixtyFourBitAttributesAreRecognised) {
  const Handle handle;
  const TensorDescriptor y({{2, 6, 4, 4}}), x({{2, 4, 10, 10}}), w({{6, 4, 3, 3}});
  int64_t pads[] = {0, 0}, strides[] = {2, 2}, dilations[] = {1, 1};
  infiniopConvDescriptor_t descriptor = nullptr;
  EXPECT_EQ(infiniopCreateConvDescriptor(handle.get(), &descriptor, y.get(), x.get(), w.get(), nullptr, pads,
                                         strides, dilations, 2),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  EXPECT_EQ(infiniopDestroyConvDescriptor(descriptor), INFINI_STATUS_SUCCESS);
}

TEST(ForwardConv, ValuesWithAndWithoutABias) {
  for (const bool has_bias : {false, true})
    for (const infiniDtype_t type : {INFINI_DTYPE_F32, INFINI_DTYPE_F16, INFINI_DTYPE_BF16}) {
      Conv call;
      call.w.shape = {6, 2, 3, 3};
      call.y.dtype = call.x.dtype = call.w.dtype = call.b->dtype = type;
      if (!has_bias) call.b.reset();
      Tensor y(call.y), x(call.x), w(call.w), b(View{{6}, {}, type});
      x.fill([](size_t i) { return static_cast<double>(i % 3) - 1; });
      w.fill([](size_t i) { return static_cast<double>(i % 2); });
      b.fill([](size_t i) { return static_cast<double>(i) - 2; });
      const Operator conv = make_conv(call);
      ASSERT_EQ(infiniopConv(conv.get(), room().data(), room().size(), y.data(), x.data(), w.data(), b.data(),
                             nullptr),
                INFINI_STATUS_SUCCESS)
          << retrogradGetLastError();
      for (size_t out = 0; out < y.count(); ++out) {
        const size_t n = out / 384, o = out / 64 % 6, h = out / 8 % 8, v = out % 8;
        double sum = has_bias ? b.at(o) : 0;
        for (size_t i = 0; i < 2; ++i)
          for (size_t t = 0; t < 9; ++t)
            sum +=
                x.at(((n * 4 + o / 3 * 2 + i) * 10 + h + t / 3) * 10 + v + t % 3) * w.at((o * 2 + i) * 9 + t);
        ASSERT_EQ(y.at(out), sum) << "element " << out << ", bias " << has_bias << ", type " << type;
      }
    }
}

TEST(ForwardConv, MissingDataIsNamed) {
  const Operator conv = make_conv({});
  const Conv call;
  Tensor y(call.y), x(call.x), w(call.w), b(*call.b);
  const auto run = [&](void* to, const void* from, const void* weight, const void* bias) {
    return infiniopConv(conv.get(), room().data(), room().size(), to, from, weight, bias, nullptr);
  };
  expect_refused(run(nullptr, x.data(), w.data(), b.data()), kParam, "infiniopConv", {"y has no data"});
  expect_refused(run(y.data(), nullptr, w.data(), b.data()), kParam, "infiniopConv", {"x has no data"});
  expect_refused(run(y.data(), x.data(), nullptr, b.data()), kParam, "infiniopConv", {"w has no data"});
  expect_refused(run(y.data(), x.data(), w.data(), nullptr), kParam, "infiniopConv", {"bias has no data"});
}

TEST(ForwardConv, DescriptorsOfOtherOperatorsAreRefused) {
  const Operator pool = make_pool({});
  size_t size = 0;
  EXPECT_EQ(infiniopGetConvWorkspaceSize(pool.get(), &size), kParam);
  EXPECT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(pool.get(), &size), kParam);
  EXPECT_EQ(infiniopDestroyConvDescriptor(pool.get()), kParam);
  EXPECT_EQ(infiniopConv(nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr), kParam);
  EXPECT_EQ(infiniopAvgPool(nullptr, nullptr, 0, nullptr, nullptr, nullptr), kParam);
}

TEST(ForwardConv, AWorkspaceThatIsTooSmallIsRefused) {
  const Operator conv = make_conv({});
  const Conv call;
  Tensor y(call.y), x(call.x), w(call.w), b(*call.b);
  size_t size = 0;
  ASSERT_EQ(infiniopGetConvWorkspaceSize(conv.get(), &size), INFINI_STATUS_SUCCESS);
  ASSERT_GT(size, 0U);
  expect_refused(
      infiniopConv(conv.get(), room().data(), size - 1, y.data(), x.data(), w.data(), b.data(), nullptr),
      INFINI_STATUS_INSUFFICIENT_WORKSPACE, "infiniopConv", {"expected at least"});
}

TEST(ForwardPool, CountsPaddingAndClipsWindows) {
  Pool call;
  call.input.shape = {1, 1, 5, 5};
  call.output.shape = {1, 1, 3, 3};
  call.kernel_size = {3, 3};
  call.pads = {1, 1};
  Tensor x(call.input), y(call.output);
  x.fill([](size_t) { return 9; });
  const Operator pool = make_pool(call);
  ASSERT_EQ(infiniopAvgPool(pool.get(), room().data(), room().size(), y.data(), x.data(), nullptr),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  EXPECT_EQ(y.values(), (std::vector<double>{4, 6, 4, 6, 9, 6, 4, 6, 4}));
}

// Windows begin at -1, 2 and 5, of which the last is beyond the padded input: the size without it is legal,
// and so is the size with it, whose window holds nothing and is not divided by nothing.
TEST(ForwardPool, CeilSizesWithAndWithoutTheCorrection) {
  for (const size_t size : {size_t{2}, size_t{3}}) {
    Pool call;
    call.input.shape = {1, 1, 4};
    call.output.shape = {1, 1, size};
    call.kernel_size = {2};
    call.strides = {3};
    call.pads = {1};
    call.ceil_mode = true;
    Tensor x(call.input), y(call.output);
    x.fill([](size_t i) { return std::vector<double>{8, 4, 2, 6}[i]; });
    const Operator pool = make_pool(call);
    ASSERT_EQ(infiniopAvgPool(pool.get(), room().data(), room().size(), y.data(), x.data(), nullptr),
              INFINI_STATUS_SUCCESS)
        << retrogradGetLastError();
    EXPECT_EQ(y.values(), size == 2 ? (std::vector<double>{4, 4}) : (std::vector<double>{4, 4, 0}));
  }
}

TEST(ForwardPool, MissingDataIsNamed) {
  const Operator pool = make_pool({});
  const Pool call;
  Tensor y(call.output), x(call.input);
  const auto run = [&](void* to, const void* from) {
    return infiniopAvgPool(pool.get(), room().data(), room().size(), to, from, nullptr);
  };
  expect_refused(run(nullptr, x.data()), kParam, "infiniopAvgPool", {"output has no data"});
  expect_refused(run(y.data(), nullptr), kParam, "infiniopAvgPool", {"input has no data"});
}

}  // namespace
}  // namespace retrograd::infini_test::forward_test
