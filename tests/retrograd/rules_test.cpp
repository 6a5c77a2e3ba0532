// SPDX-License-Identifier: Apache-2.0
// Bad input to our own interface: each gives its number and a sentence that names what is wrong; never a
// crash.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "client.h"

namespace retrograd::test {
namespace {

// Fails with the number and the words, in each call that takes a problem, and writes nothing.
void expect_refused(Client& client, retrogradStatus_t number, const std::vector<std::string>& words) {
  const auto explains = [&](const char* function) {
    const std::string text = retrogradGetLastError();
    EXPECT_EQ(text.rfind(std::to_string(number) + " " + function + ": ", 0), 0u) << text;
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  auto* const untouched = reinterpret_cast<retrogradPlan_t>(uintptr_t{0x77});
  retrogradPlan_t plan = untouched;
  EXPECT_EQ(retrogradCreatePlan(&plan, &client.problem), number);
  explains("retrogradCreatePlan");
  EXPECT_EQ(plan, untouched);
  EXPECT_EQ(retrogradRun(&client.problem, nullptr), number);
  explains("retrogradRun");
}

struct Rule {
  const char* name;
  Client (*client)();
  void (*spoil)(Client&);
  retrogradStatus_t number;
  std::vector<std::string> words;
};

constexpr int64_t kHuge = int64_t{1} << 62;
const int64_t kMinusOne[] = {-1}, kZero[] = {0}, kList[40] = {}, kAbsurd[] = {kHuge};

const Rule kRules[] = {
    {"struct_size_0",
     conv,
     [](Client& c) { c.problem.struct_size = 0; },
     RETROGRAD_INVALID_ARGUMENT,
     {"struct_size is 0"}},
    {"struct_size_huge",
     conv,
     [](Client& c) { c.problem.struct_size = SIZE_MAX; },
     RETROGRAD_INVALID_ARGUMENT,
     {"struct_size is 18446744073709551615"}},
    {"operation",
     conv,
     [](Client& c) { c.problem.operation = static_cast<retrogradOperation_t>(6); },
     RETROGRAD_INVALID_ARGUMENT,
     {"operation is 6, expected 0 to 5"}},
    {"operation_negative",
     conv,
     [](Client& c) { c.problem.operation = static_cast<retrogradOperation_t>(-1); },
     RETROGRAD_INVALID_ARGUMENT,
     {"operation is -1, expected 0 to 5"}},
    {"backward_with_output",
     conv,
     [](Client& c) { c.problem.output = &c.views[0]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"output is given, and a backward operation has none"}},
    {"backward_with_bias",
     conv_tbc,
     [](Client& c) { c.problem.bias = &c.views[5]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"bias is given, and a backward operation has none"}},
    {"forward_with_grad_output",
     pool_forward,
     [](Client& c) { c.problem.grad_output = &c.views[7]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"grad_output is given, and a forward operation has none"}},
    {"forward_with_grad_bias",
     conv_forward,
     [](Client& c) { c.problem.grad_bias = &c.views[6]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"grad_bias is given, and a forward operation has none"}},
    {"forward_without_output",
     conv_forward,
     [](Client& c) { c.problem.output = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"output is null"}},
    {"conv_tbc_without_bias",
     conv_tbc_forward,
     [](Client& c) { c.problem.bias = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"bias is null"}},
    {"pooling_with_bias",
     pool_forward,
     [](Client& c) { c.problem.bias = &c.views[7]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"bias is given, and pooling has none"}},
    {"output_shape",
     conv_forward,
     [](Client& c) {
       c.tensors[7].shape[2] = 5;
       c.views[7] = c.tensors[7].view();
     },
     RETROGRAD_BAD_SHAPE,
     {"output.shape[2] is 5, expected 6"}},
    {"output_overlaps",
     conv_tbc_forward,
     [](Client& c) {
       c.tensors[7].strides = {8, 4, 0};
       c.refresh();
     },
     RETROGRAD_BAD_STRIDES,
     {"output"}},
    {"output_dtype",
     pool_forward,
     [](Client& c) { c.views[7].dtype = RETROGRAD_F16; },
     RETROGRAD_BAD_DTYPE,
     {"output.dtype is f16, expected f32: the type of input"}},
    {"bias_shape",
     conv_forward,
     [](Client& c) {
       c.tensors[6].shape = {5};
       c.views[6] = c.tensors[6].view();
     },
     RETROGRAD_BAD_SHAPE,
     {"bias.shape"}},
    {"bias_device",
     conv_forward,
     [](Client& c) {
       c.views[6].device = {RETROGRAD_CUDA, 0};
     },
     RETROGRAD_WRONG_DEVICE,
     {"bias is on cuda:0, expected cpu:0"}},
    {"grad_output_null",
     conv,
     [](Client& c) { c.problem.grad_output = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"grad_output is null"}},
    {"input_null",
     pool,
     [](Client& c) { c.problem.input = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"input is null"}},
    {"weight_null",
     conv_tbc,
     [](Client& c) { c.problem.weight = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"weight is null"}},
    {"pool_without_result",
     pool,
     [](Client& c) { c.problem.grad_input = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"grad_input is null"}},
    {"dtype",
     conv,
     [](Client& c) { c.views[1].dtype = static_cast<retrogradDtype_t>(5); },
     RETROGRAD_BAD_DTYPE,
     {"input.dtype is 5"}},
    {"dtype_negative",
     conv,
     [](Client& c) { c.views[3].dtype = static_cast<retrogradDtype_t>(-1); },
     RETROGRAD_BAD_DTYPE,
     {"grad_input.dtype is -1"}},
    {"dtype_of_pooling",
     pool,
     [](Client& c) { c.views[0].dtype = RETROGRAD_E4M3; },
     RETROGRAD_BAD_DTYPE,
     {"grad_output.dtype is e4m3"}},
    {"rank_negative",
     conv,
     [](Client& c) { c.views[2].rank = -1; },
     RETROGRAD_BAD_SHAPE,
     {"weight.rank is -1, expected 0 to 8"}},
    {"rank_huge",
     conv,
     [](Client& c) { c.views[0].rank = INT32_MAX; },
     RETROGRAD_BAD_SHAPE,
     {"grad_output.rank is 2147483647"}},
    {"rank_2", conv, [](Client& c) { c.views[1].rank = 2; }, RETROGRAD_BAD_SHAPE, {"rank 2"}},
    {"shape_null",
     conv,
     [](Client& c) { c.views[1].shape = nullptr; },
     RETROGRAD_NULL_ARGUMENT,
     {"input.shape is null"}},
    {"size_huge",
     conv,
     [](Client& c) {
       c.tensors[1].shape = {kHuge, kHuge, kHuge, kHuge};
       c.views[1] = c.tensors[1].view();
     },
     RETROGRAD_BAD_SHAPE,
     {"input"}},
    {"size_negative",
     conv,
     [](Client& c) {
       c.tensors[1].shape[2] = -6;
       c.views[1] = c.tensors[1].view();
     },
     RETROGRAD_BAD_SHAPE,
     {"input", "-6"}},
    {"result_overlaps",
     conv,
     [](Client& c) {
       c.tensors[3].strides = {90, 30, 5, 0};
       c.refresh();
     },
     RETROGRAD_BAD_STRIDES,
     {"grad_input"}},
    {"shapes_differ",
     conv,
     [](Client& c) {
       c.tensors[4].shape[0] = 5;
       c.views[4] = c.tensors[4].view();
     },
     RETROGRAD_BAD_SHAPE,
     {"grad_weight.shape"}},
    {"stride_zero",
     conv,
     [](Client& c) {
       c.problem.stride = {kZero, 1};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"stride[0] is 0"}},
    {"padding_negative",
     conv,
     [](Client& c) {
       c.problem.padding = {kMinusOne, 1};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"padding[0] is -1"}},
    {"padding_huge",
     conv,
     [](Client& c) {
       c.problem.padding = {kAbsurd, 1};
     },
     RETROGRAD_BAD_SHAPE,
     {"does not fit in 64 bits"}},
    {"list_null",
     conv,
     [](Client& c) {
       c.problem.dilation = {nullptr, 2};
     },
     RETROGRAD_NULL_ARGUMENT,
     {"dilation.values is null"}},
    {"list_long",
     conv,
     [](Client& c) {
       c.problem.dilation = {kList, 40};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"dilation has 40 entries"}},
    {"list_longest",
     conv,
     [](Client& c) {
       c.problem.dilation = {kList, SIZE_MAX};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"dilation has 18446744073709551615 entries"}},
    {"list_length",
     conv,
     [](Client& c) {
       c.problem.stride = {kList, 3};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"stride has 3 entries, expected 2"}},
    {"output_padding_plain",
     conv,
     [](Client& c) {
       c.problem.output_padding = {kOne, 1};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"output_padding[0] is 1", "not transposed"}},
    {"transposed",
     conv,
     [](Client& c) { c.problem.transposed = 2; },
     RETROGRAD_INVALID_ARGUMENT,
     {"transposed is 2, expected 0 or 1"}},
    {"groups", conv, [](Client& c) { c.problem.groups = 0; }, RETROGRAD_INVALID_ARGUMENT, {"groups is 0"}},
    {"math",
     conv,
     [](Client& c) { c.problem.math = static_cast<retrogradMath_t>(4); },
     RETROGRAD_INVALID_ARGUMENT,
     {"math is 4"}},
    {"kernel_of_conv",
     conv,
     [](Client& c) {
       c.problem.kernel = {kTwo, 1};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"kernel is given, and a convolution has none"}},
    {"groups_of_pool",
     pool,
     [](Client& c) { c.problem.groups = 2; },
     RETROGRAD_INVALID_ARGUMENT,
     {"groups is given, and pooling has none"}},
    {"count_include_pad_of_conv",
     conv,
     [](Client& c) { c.problem.count_include_pad = 0; },
     RETROGRAD_INVALID_ARGUMENT,
     {"count_include_pad is given, and a convolution has none"}},
    {"count_include_pad_of_tbc",
     conv_tbc_forward,
     [](Client& c) { c.problem.count_include_pad = 0; },
     RETROGRAD_INVALID_ARGUMENT,
     {"count_include_pad is given, and conv_tbc has none"}},
    {"winograd_of_tbc",
     conv_tbc,
     [](Client& c) { c.problem.winograd = 1; },
     RETROGRAD_INVALID_ARGUMENT,
     {"winograd is given, and conv_tbc has none"}},
    {"winograd_of_pool",
     pool,
     [](Client& c) { c.problem.winograd = 1; },
     RETROGRAD_INVALID_ARGUMENT,
     {"winograd is given, and pooling has none"}},
    {"math_of_pool",
     pool_forward,
     [](Client& c) { c.problem.math = RETROGRAD_MATH_F16; },
     RETROGRAD_INVALID_ARGUMENT,
     {"math is given, and pooling has none"}},
    {"weight_of_pool",
     pool,
     [](Client& c) { c.problem.weight = &c.views[0]; },
     RETROGRAD_INVALID_ARGUMENT,
     {"weight is given"}},
    {"stride_of_tbc",
     conv_tbc,
     [](Client& c) {
       c.problem.stride = {kOne, 1};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"stride is given, and conv_tbc has none"}},
    {"padding_of_tbc",
     conv_tbc,
     [](Client& c) {
       c.problem.padding = {kList, 2};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"padding has 2 entries, expected 1"}},
    {"kernel_missing",
     pool,
     [](Client& c) {
       c.problem.kernel = {nullptr, 0};
     },
     RETROGRAD_INVALID_ARGUMENT,
     {"kernel is empty"}},
    {"spatial_rank",
     pool,
     [](Client& c) { c.problem.spatial_rank = 4; },
     RETROGRAD_INVALID_ARGUMENT,
     {"spatial_rank is 4"}},
    {"ceil_mode",
     pool,
     [](Client& c) { c.problem.ceil_mode = -1; },
     RETROGRAD_INVALID_ARGUMENT,
     {"ceil_mode is -1"}},
    {"device_type",
     conv,
     [](Client& c) {
       for (auto& view : c.views) view.device = {static_cast<retrogradDeviceType_t>(9), 0};
     },
     RETROGRAD_NO_DEVICE,
     {"grad_output.device.type is 9"}},
    {"device_index",
     conv,
     [](Client& c) {
       for (auto& view : c.views) view.device.index = -3;
     },
     RETROGRAD_NO_DEVICE,
     {"cpu:-3"}},
    {"devices_differ",
     conv,
     [](Client& c) {
       c.views[4].device = {RETROGRAD_CUDA, 1};
     },
     RETROGRAD_WRONG_DEVICE,
     {"grad_weight is on cuda:1, expected cpu:0: the device of grad_output"}},
};

class OwnRulesTest : public ::testing::TestWithParam<Rule> {};

TEST_P(OwnRulesTest, IsKept) {
  Client client = GetParam().client();
  client.refresh();
  ASSERT_EQ(retrogradRun(&client.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  GetParam().spoil(client);
  expect_refused(client, GetParam().number, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(All, OwnRulesTest, ::testing::ValuesIn(kRules),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(OwnRules, FieldsOfALaterVersionMustSayNothing) {
  struct Later {
    retrogradProblem_t known;
    int64_t unknown;
  };
  Client client = conv();
  client.refresh();
  Later later{client.problem, 0};
  later.known.struct_size = sizeof later;
  retrogradPlan_t plan = nullptr;
  EXPECT_EQ(retrogradCreatePlan(&plan, &later.known), RETROGRAD_OK) << retrogradGetLastError();
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
  later.unknown = 1;
  EXPECT_EQ(retrogradCreatePlan(&plan, &later.known), RETROGRAD_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(retrogradGetLastError(), "later version"), nullptr);
}

// A program of a later header sets up all of its struct, and nothing behind it.
TEST(OwnRules, ALaterHeaderWorks) {
  Client client = conv();
  client.refresh();
  for (const size_t size : {sizeof(retrogradProblem_t) + 8, size_t{4096}}) {
    std::vector<unsigned char> memory(size + 16, 0x77);
    auto* const problem = reinterpret_cast<retrogradProblem_t*>(memory.data());
    ASSERT_EQ(retrogradInitProblem(problem, size, RETROGRAD_CONV_BACKWARD), RETROGRAD_OK)
        << retrogradGetLastError();
    EXPECT_EQ(problem->struct_size, size);
    EXPECT_EQ(problem->groups, 1);
    for (size_t i = sizeof(retrogradProblem_t); i < memory.size(); ++i)
      ASSERT_EQ(memory[i], i < size ? 0 : 0x77) << i;
    std::memcpy(memory.data() + sizeof(size_t),
                reinterpret_cast<unsigned char*>(&client.problem) + sizeof(size_t),
                sizeof(retrogradProblem_t) - sizeof(size_t));
    EXPECT_EQ(retrogradRun(problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  }
  for (const size_t size :
       {offsetof(retrogradProblem_t, output) + 8, sizeof(retrogradProblem_t) - 8, size_t{4097}, SIZE_MAX})
    EXPECT_EQ(retrogradInitProblem(&client.problem, size, RETROGRAD_CONV_BACKWARD),
              RETROGRAD_INVALID_ARGUMENT)
        << size;
}

// A program of the header that had no forward operations, with memory of its struct's size.
TEST(OwnRules, TheFirstHeaderStillWorks) {
  constexpr size_t kSize = offsetof(retrogradProblem_t, output);
  Client client = conv(), expected = conv();
  client.refresh();
  expected.refresh();
  ASSERT_EQ(retrogradRun(&expected.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  std::vector<unsigned char> memory(kSize + 16, 0x77);
  auto* const problem = reinterpret_cast<retrogradProblem_t*>(memory.data());
  ASSERT_EQ(retrogradInitProblem(problem, kSize, RETROGRAD_CONV_BACKWARD), RETROGRAD_OK);
  std::memcpy(memory.data() + sizeof(size_t),
              reinterpret_cast<unsigned char*>(&client.problem) + sizeof(size_t), kSize - sizeof(size_t));
  for (size_t i = kSize; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0x77) << i;
  ASSERT_EQ(retrogradRun(problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  for (size_t i = 3; i < 6; ++i) EXPECT_EQ(client.tensors[i].data, expected.tensors[i].data);
}

TEST(OwnRules, NullAndDeadArguments) {
  Client client = conv();
  client.refresh();
  const retrogradDevice_t cpu{RETROGRAD_CPU, 0};
  retrogradPlan_t plan = nullptr;
  size_t size = 0;
  double cost = 0;
  int32_t count = 0;
  EXPECT_EQ(retrogradInitProblem(nullptr, sizeof(retrogradProblem_t), RETROGRAD_CONV_BACKWARD),
            RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradInitProblem(&client.problem, 8, RETROGRAD_CONV_BACKWARD), RETROGRAD_INVALID_ARGUMENT);
  EXPECT_EQ(retrogradCreatePlan(nullptr, &client.problem), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradCreatePlan(&plan, nullptr), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradRun(nullptr, nullptr), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradProblemText(nullptr, nullptr, 0, &size), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradProblemText(&client.problem, nullptr, 10, &size), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradExplain(nullptr, cpu, nullptr, 0, &size), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradExplain("conv input=banana", cpu, nullptr, 0, &size), RETROGRAD_INVALID_ARGUMENT);
  EXPECT_EQ(retrogradExplain("conv input=1x1x1 weight=1x1x9", cpu, nullptr, 0, &size), RETROGRAD_BAD_SHAPE);
  EXPECT_EQ(retrogradCreatePlanFromText(nullptr, "conv input=1x1x1 weight=1x1x1", cpu),
            RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradCreatePlanFromText(&plan, "conv input=1x1x1 weight=1x1x1", {RETROGRAD_CPU, 7}),
            RETROGRAD_NO_DEVICE);
  EXPECT_EQ(retrogradCreatePlanFromText(&plan, "", cpu), RETROGRAD_INVALID_ARGUMENT);
  EXPECT_EQ(retrogradGetDeviceCount(RETROGRAD_CPU, nullptr), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradGetDeviceCount(static_cast<retrogradDeviceType_t>(-1), &count), RETROGRAD_NO_DEVICE);
  EXPECT_EQ(retrogradDescribeDevice({RETROGRAD_CPU, 1}, nullptr, 0, &size), RETROGRAD_NO_DEVICE);

  auto* const foreign = reinterpret_cast<retrogradPlan_t>(&client);
  ASSERT_EQ(retrogradCreatePlan(&plan, &client.problem), RETROGRAD_OK) << retrogradGetLastError();
  const retrogradPlan_t dead = plan;
  ASSERT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
  for (const auto& [bad, number] :
       {std::pair{retrogradPlan_t{nullptr}, RETROGRAD_NULL_ARGUMENT}, std::pair{dead, RETROGRAD_BAD_HANDLE},
        std::pair{foreign, RETROGRAD_BAD_HANDLE}}) {
    const retrogradAddresses_t addresses = client.addresses();
    EXPECT_EQ(retrogradDestroyPlan(bad), number);
    EXPECT_EQ(retrogradGetWorkspaceSize(bad, &size), number);
    EXPECT_EQ(retrogradGetPlanCost(bad, &cost), number);
    EXPECT_EQ(retrogradDescribePlan(bad, nullptr, 0, &size), number);
    EXPECT_EQ(retrogradExecute(bad, &addresses, nullptr, 0, nullptr), number);
  }
}

TEST(OwnRules, Running) {
  Client client = conv();
  client.refresh();
  retrogradPlan_t plan = nullptr;
  ASSERT_EQ(retrogradCreatePlan(&plan, &client.problem), RETROGRAD_OK) << retrogradGetLastError();
  size_t size = 0;
  ASSERT_EQ(retrogradGetWorkspaceSize(plan, &size), RETROGRAD_OK);
  std::vector<char> workspace(size + 1);
  const retrogradAddresses_t good = client.addresses();
  EXPECT_EQ(retrogradExecute(plan, nullptr, workspace.data(), size, nullptr), RETROGRAD_NULL_ARGUMENT);
  if (size > 0) {
    EXPECT_EQ(retrogradExecute(plan, &good, nullptr, size, nullptr), RETROGRAD_BAD_WORKSPACE);
    EXPECT_EQ(retrogradExecute(plan, &good, workspace.data(), size - 1, nullptr), RETROGRAD_BAD_WORKSPACE);
  }
  EXPECT_EQ(retrogradExecute(plan, &good, workspace.data(), size, &workspace), RETROGRAD_WRONG_DEVICE);
  retrogradAddresses_t bad = good;
  bad.input = nullptr;
  EXPECT_EQ(retrogradExecute(plan, &bad, workspace.data(), size, nullptr), RETROGRAD_NULL_ARGUMENT);
  EXPECT_NE(std::strstr(retrogradGetLastError(), "input has no data"), nullptr);
  bad.grad_weight = nullptr;  // nobody reads the input then
  EXPECT_EQ(retrogradExecute(plan, &bad, workspace.data(), size, nullptr), RETROGRAD_OK);
  EXPECT_EQ(retrogradExecute(plan, &good, workspace.data(), size, nullptr), RETROGRAD_OK);
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
}

TEST(OwnRules, ErrorsBelongToTheirThread) {
  EXPECT_EQ(retrogradDestroyPlan(nullptr), RETROGRAD_NULL_ARGUMENT);
  const std::string here = retrogradGetLastError();
  std::thread([&] {
    EXPECT_STREQ(retrogradGetLastError(), "");
    EXPECT_EQ(retrogradRun(nullptr, nullptr), RETROGRAD_NULL_ARGUMENT);
  }).join();
  EXPECT_EQ(here, retrogradGetLastError());
  EXPECT_EQ(here, "1 retrogradDestroyPlan: plan is null");
}

}  // namespace
}  // namespace retrograd::test
