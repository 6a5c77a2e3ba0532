// SPDX-License-Identifier: Apache-2.0
// Plans of our own interface: results with strides of their own, output padding beyond the stride, texts,
// many threads, loops on a host's threads. test_interfaces compares values on all problems of tests/shapes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "client.h"

namespace retrograd::test {
namespace {

constexpr retrogradDevice_t kCpu{RETROGRAD_CPU, 0};

std::string text_of(const std::function<retrogradStatus_t(char*, size_t, size_t*)>& call) {
  size_t length = 0;
  EXPECT_EQ(call(nullptr, 0, &length), RETROGRAD_OK) << retrogradGetLastError();
  std::string text(length + 1, '?');
  EXPECT_EQ(call(text.data(), text.size(), nullptr), RETROGRAD_OK);
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

std::vector<float> results(const Client& client) {
  std::vector<float> all;
  for (size_t i = 3; i < client.tensors.size(); ++i)
    all.insert(all.end(), client.tensors[i].data.begin(), client.tensors[i].data.end());
  return all;
}

TEST(OwnPlan, ResultsHaveStridesOfTheirOwn) {
  Client dense = conv(), other = conv();
  dense.refresh();
  ASSERT_EQ(retrogradRun(&dense.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  other.tensors[3].strides = {90, 1, 15, 3};  // channels last
  other.tensors[4].strides = {1, 4, 12, 36};  // the other way round
  other.tensors[5].strides = {3};
  other.tensors[5].data.assign(12, -7);
  other.refresh();
  ASSERT_EQ(retrogradRun(&other.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t i = 0; i < 30; ++i)
        ASSERT_EQ(other.tensors[3].data[static_cast<size_t>(n * 90 + c + i * 3)],
                  dense.tensors[3].data[static_cast<size_t>(n * 90 + c * 30 + i)]);
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t i = 0; i < 27; ++i)
      ASSERT_EQ(other.tensors[4].data[static_cast<size_t>(o + (i / 9) * 4 + (i / 3 % 3) * 12 + (i % 3) * 36)],
                dense.tensors[4].data[static_cast<size_t>(o * 27 + i)]);
  for (size_t o = 0; o < 12; ++o)
    EXPECT_EQ(other.tensors[5].data[o], o % 3 == 0 ? dense.tensors[5].data[o / 3] : -7) << o;
}

// out[q] = Σ in[o]·w[t] over q = o·stride − padding + t·dilation, for every q of the output.
TEST(OwnPlan, OutputPaddingBeyondTheStride) {
  constexpr int64_t kIn = 4, kKernel = 3, kStride = 2, kDilation = 3, kPadding = 3, kExtra = 5;
  constexpr int64_t kOut = (kIn - 1) * kStride - 2 * kPadding + kDilation * (kKernel - 1) + 1 + kExtra;
  const int64_t stride = kStride, dilation = kDilation, padding = kPadding, extra = kExtra;
  Client client(RETROGRAD_CONV_BACKWARD,
                {Tensor({1, 1, kOut}), Tensor({1, 1, kIn}, 2), Tensor({1, 1, kKernel}, 3),
                 Tensor({1, 1, kIn}), Tensor({1, 1, kKernel}), Tensor({1})});
  client.problem.transposed = 1;
  client.problem.stride = {&stride, 1};
  client.problem.dilation = {&dilation, 1};
  client.problem.padding = {&padding, 1};
  client.problem.output_padding = {&extra, 1};
  ASSERT_EQ(retrogradRun(&client.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  float dx[kIn] = {}, dw[kKernel] = {}, db = 0;
  const auto& t = client.tensors;
  for (size_t o = 0; o < kIn; ++o)
    for (size_t k = 0; k < kKernel; ++k) {
      const int64_t q = static_cast<int64_t>(o) * kStride - kPadding + static_cast<int64_t>(k) * kDilation;
      if (q < 0 || q >= kOut) continue;
      dx[o] += t[0].data[static_cast<size_t>(q)] * t[2].data[k];
      dw[k] += t[0].data[static_cast<size_t>(q)] * t[1].data[o];
    }
  for (const float value : t[0].data) db += value;
  EXPECT_EQ(t[3].data, std::vector<float>(dx, dx + kIn));
  EXPECT_EQ(t[4].data, std::vector<float>(dw, dw + kKernel));
  EXPECT_EQ(t[5].data[0], db);
}

// Sums in integers, with the bias and without, into channels last.
TEST(OwnPlan, ForwardIntoStridesOfItsOwn) {
  for (const bool with_bias : {true, false}) {
    Client client = conv_forward();
    client.tensors[7].strides = {120, 1, 20, 4};
    client.refresh();
    if (!with_bias) client.problem.bias = nullptr;
    ASSERT_EQ(retrogradRun(&client.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
    const auto& t = client.tensors;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < 4; ++o)
        for (int64_t p = 0; p < 30; ++p) {
          float sum = with_bias ? t[6].data[static_cast<size_t>(o)] : 0;
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t k = 0; k < 9; ++k) {
              const int64_t h = p / 5 + k / 3 - 1, w = p % 5 + k % 3 - 1;
              if (h < 0 || h >= 6 || w < 0 || w >= 5) continue;
              sum += t[1].data[static_cast<size_t>(((n * 3 + i) * 6 + h) * 5 + w)] *
                     t[2].data[static_cast<size_t>((o * 3 + i) * 9 + k)];
            }
          ASSERT_EQ(t[7].data[static_cast<size_t>(n * 120 + o + p * 4)], sum) << n << ' ' << o << ' ' << p;
        }
  }
}

TEST(OwnPlan, TensorsOfAForwardPlan) {
  retrogradPlan_t plan = nullptr;
  ASSERT_EQ(retrogradCreatePlanFromText(&plan, "conv input=2x3x6x5 weight=4x3x3x3 bias=4 forward=1", kCpu),
            RETROGRAD_OK)
      << retrogradGetLastError();
  retrogradTensor_t tensor;
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_OUTPUT, &tensor), RETROGRAD_OK);
  EXPECT_EQ(std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank),
            (std::vector<int64_t>{2, 4, 4, 3}));
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_BIAS, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.rank, 1);
  for (const auto absent :
       {RETROGRAD_GRAD_OUTPUT, RETROGRAD_GRAD_INPUT, RETROGRAD_GRAD_WEIGHT, RETROGRAD_GRAD_BIAS}) {
    ASSERT_EQ(retrogradGetPlanTensor(plan, absent, &tensor), RETROGRAD_OK);
    EXPECT_EQ(tensor.rank, -1);
  }
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
}

TEST(OwnPlan, AResultThatIsNotAskedForIsLeftAlone) {
  for (const auto make : {conv, conv_tbc}) {
    Client all = make();
    all.refresh();
    ASSERT_EQ(retrogradRun(&all.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
    for (size_t left_out = 3; left_out < 6; ++left_out) {
      Client some = make();
      some.tensors[left_out].data.assign(some.tensors[left_out].data.size(), -7);
      some.refresh();
      (left_out == 3   ? some.problem.grad_input
       : left_out == 4 ? some.problem.grad_weight
                       : some.problem.grad_bias) = nullptr;
      ASSERT_EQ(retrogradRun(&some.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
      for (size_t i = 3; i < 6; ++i)
        EXPECT_EQ(some.tensors[i].data,
                  i == left_out ? std::vector<float>(some.tensors[i].data.size(), -7) : all.tensors[i].data)
            << i << " without " << left_out;
    }
  }
}

TEST(OwnPlan, TextsOfProblemsMakeTheSamePlans) {
  for (const auto make : {conv, conv_tbc, pool, conv_forward, conv_tbc_forward, pool_forward}) {
    Client client = make();
    client.refresh();
    const std::string text =
        text_of([&](char* t, size_t n, size_t* l) { return retrogradProblemText(&client.problem, t, n, l); });
    retrogradPlan_t given = nullptr, parsed = nullptr;
    ASSERT_EQ(retrogradCreatePlan(&given, &client.problem), RETROGRAD_OK) << retrogradGetLastError();
    ASSERT_EQ(retrogradCreatePlanFromText(&parsed, text.c_str(), kCpu), RETROGRAD_OK) << text;
    const auto described = [](retrogradPlan_t plan) {
      return text_of([&](char* t, size_t n, size_t* l) { return retrogradDescribePlan(plan, t, n, l); });
    };
    EXPECT_EQ(described(given), described(parsed));
    EXPECT_NE(described(given).find("cpu."), std::string::npos) << described(given);
    double cost = -1;
    EXPECT_EQ(retrogradGetPlanCost(given, &cost), RETROGRAD_OK);
    EXPECT_GT(cost, 0);
    const std::string told =
        text_of([&](char* t, size_t n, size_t* l) { return retrogradExplain(text.c_str(), kCpu, t, n, l); });
    EXPECT_NE(told.find(text), std::string::npos) << told;
    EXPECT_NE(told.find("takes it"), std::string::npos) << told;
    EXPECT_EQ(retrogradDestroyPlan(given), RETROGRAD_OK);
    EXPECT_EQ(retrogradDestroyPlan(parsed), RETROGRAD_OK);
  }
}

TEST(OwnPlan, TensorsOfAPlan) {
  retrogradPlan_t plan = nullptr;
  ASSERT_EQ(
      retrogradCreatePlanFromText(
          &plan, "conv input=2x3x6x5:bf16 weight=4x3x3x3:bf16 grad_weight=4x3x3x3:f32@1x4x36x12 mask=wb",
          kCpu),
      RETROGRAD_OK)
      << retrogradGetLastError();
  retrogradTensor_t tensor;
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_GRAD_OUTPUT, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.dtype, RETROGRAD_BF16);
  EXPECT_EQ(std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank),
            (std::vector<int64_t>{2, 4, 4, 3}));
  EXPECT_EQ(std::vector<int64_t>(tensor.strides, tensor.strides + 4), (std::vector<int64_t>{48, 12, 3, 1}));
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_GRAD_WEIGHT, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.dtype, RETROGRAD_F32);
  EXPECT_EQ(std::vector<int64_t>(tensor.strides, tensor.strides + 4), (std::vector<int64_t>{1, 4, 36, 12}));
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_GRAD_INPUT, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.rank, -1);
  EXPECT_EQ(retrogradGetPlanTensor(plan, static_cast<retrogradOperand_t>(8), &tensor),
            RETROGRAD_INVALID_ARGUMENT);
  EXPECT_EQ(retrogradGetPlanTensor(plan, static_cast<retrogradOperand_t>(-1), &tensor),
            RETROGRAD_INVALID_ARGUMENT);
  EXPECT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_INPUT, nullptr), RETROGRAD_NULL_ARGUMENT);
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);

  Client client = conv_tbc();
  client.refresh();
  client.problem.grad_weight = nullptr;
  ASSERT_EQ(retrogradCreatePlan(&plan, &client.problem), RETROGRAD_OK) << retrogradGetLastError();
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_GRAD_WEIGHT, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.rank, -1);
  ASSERT_EQ(retrogradGetPlanTensor(plan, RETROGRAD_GRAD_BIAS, &tensor), RETROGRAD_OK);
  EXPECT_EQ(tensor.rank, 1);
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
}

// Only what is asked for is planned, computed and paid for.
TEST(OwnPlan, GradientsOfTbcThatAreNullHaveNoPass) {
  Client all = conv_tbc(), some = conv_tbc();
  all.refresh();
  some.refresh();
  ASSERT_EQ(retrogradRun(&all.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  const std::vector<float> untouched = some.tensors[4].data;
  some.problem.grad_weight = nullptr;
  retrogradPlan_t plans[2] = {};
  double costs[2] = {};
  ASSERT_EQ(retrogradCreatePlan(&plans[0], &all.problem), RETROGRAD_OK) << retrogradGetLastError();
  ASSERT_EQ(retrogradCreatePlan(&plans[1], &some.problem), RETROGRAD_OK) << retrogradGetLastError();
  for (size_t i = 0; i < 2; ++i) ASSERT_EQ(retrogradGetPlanCost(plans[i], &costs[i]), RETROGRAD_OK);
  EXPECT_LT(costs[1], costs[0]);
  char text[1000];
  ASSERT_EQ(retrogradDescribePlan(plans[1], text, sizeof text, nullptr), RETROGRAD_OK);
  EXPECT_EQ(std::strstr(text, "grad_weight"), nullptr) << text;
  EXPECT_NE(std::strstr(text, "grad_bias"), nullptr) << text;
  for (const retrogradPlan_t plan : plans) EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
  ASSERT_EQ(retrogradRun(&some.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  EXPECT_EQ(some.tensors[3].data, all.tensors[3].data);
  EXPECT_EQ(some.tensors[4].data, untouched);
  EXPECT_EQ(some.tensors[5].data, all.tensors[5].data);
  some.problem.grad_input = some.problem.grad_bias = nullptr;
  EXPECT_EQ(retrogradRun(&some.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
}

TEST(OwnPlan, TextsAreCutWhereTheirMemoryEnds) {
  char memory[8];
  for (size_t capacity = 1; capacity <= sizeof memory; ++capacity) {
    std::memset(memory, '#', sizeof memory);
    size_t length = 0;
    ASSERT_EQ(retrogradDescribeDevice(kCpu, memory, capacity, &length), RETROGRAD_OK);
    EXPECT_GT(length, sizeof memory);
    EXPECT_EQ(std::string(memory), std::string("cpu:0, ").substr(0, capacity - 1));
    for (size_t i = capacity; i < sizeof memory; ++i) EXPECT_EQ(memory[i], '#');
  }
}

TEST(OwnPlan, ManyThreadsRunOneWhileItIsDestroyed) {
  Client expected = conv();
  expected.refresh();
  ASSERT_EQ(retrogradRun(&expected.problem, nullptr), RETROGRAD_OK);
  retrogradPlan_t plan = nullptr;
  ASSERT_EQ(retrogradCreatePlan(&plan, &expected.problem), RETROGRAD_OK);
  size_t size = 0;
  ASSERT_EQ(retrogradGetWorkspaceSize(plan, &size), RETROGRAD_OK);
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Client own = conv();
      own.refresh();
      std::vector<char> workspace(size);
      for (int round = 0; round < 2000; ++round) {
        const retrogradAddresses_t addresses = own.addresses();
        const auto status = retrogradExecute(plan, &addresses, workspace.data(), size, nullptr);
        if (status == RETROGRAD_BAD_HANDLE) break;
        ASSERT_EQ(status, RETROGRAD_OK) << retrogradGetLastError();
        ASSERT_EQ(results(own), results(expected));
        ++runs;
      }
    });
  while (runs < 100) std::this_thread::yield();
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_OK);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(retrogradDestroyPlan(plan), RETROGRAD_BAD_HANDLE);
}

// A host with threads of its own for each loop.
struct Host {
  int threads = 2;
  std::atomic<int> loops{0};
  static void parallel_for(void* context, int64_t pieces, retrogradPiece_t piece, void* piece_context) {
    ++static_cast<Host*>(context)->loops;
    std::vector<std::thread> others;
    for (int64_t i = 1; i < pieces; ++i) others.emplace_back([=] { piece(piece_context, i); });
    piece(piece_context, 0);
    for (std::thread& other : others) other.join();
  }
  static int thread_count(void* context) { return static_cast<Host*>(context)->threads; }
};

TEST(OwnParallelFor, SameBitsOnAnyThreads) {
  const auto numbers = [] {
    Client client(RETROGRAD_CONV_BACKWARD,
                  {Tensor({4, 32, 28, 28}), Tensor({4, 16, 28, 28}, 2), Tensor({32, 16, 3, 3}, 3),
                   Tensor({4, 16, 28, 28}), Tensor({32, 16, 3, 3}), Tensor({32})});
    client.problem.padding = {kOne, 1};
    // Sums of these are not exact: another order would be seen.
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < client.tensors[i].data.size(); ++j)
        client.tensors[i].data[j] = static_cast<float>((j * 2654435761u + i) % 1000003) * 1e-4f - 50.f;
    return client;
  };
  Client own = numbers();
  own.refresh();
  ASSERT_EQ(retrogradRun(&own.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
  for (const int threads : {1, 2, 3, 5}) {
    Host host;
    host.threads = threads;
    ASSERT_EQ(retrogradSetParallelFor(Host::parallel_for, Host::thread_count, &host), RETROGRAD_OK);
    Client hosted = numbers();
    hosted.refresh();
    EXPECT_EQ(retrogradRun(&hosted.problem, nullptr), RETROGRAD_OK) << retrogradGetLastError();
    ASSERT_EQ(retrogradSetParallelFor(nullptr, nullptr, nullptr), RETROGRAD_OK);
    EXPECT_TRUE(results(hosted) == results(own)) << threads << " threads";
    EXPECT_EQ(host.loops > 0, threads > 1);
  }
}

}  // namespace
}  // namespace retrograd::test
