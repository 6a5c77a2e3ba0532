// SPDX-License-Identifier: Apache-2.0
// Many threads, streams and events at once, through the C interface.
#include <atomic>
#include <thread>

#include "run_call.h"

namespace retrograd::acl_test {
namespace {

class Concurrency : public AclTest {};

ConvCall small_conv() {
  ConvCall call;
  call.grad_output.shape = call.input.shape = call.grad_input.shape = {2, 2, 7, 7};
  call.weight.shape = call.grad_weight.shape = {2, 2, 1, 1};
  call.grad_bias.shape = {2};
  call.bias_sizes = {2};
  return call;
}

void expect_gradients_of(float value, aclrtStream stream) {
  const ConvCall call = small_conv();
  const auto out = run(call, {Values(196, value), Values(196, value), Values(4, value)}, stream);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0], Values(196, 2 * value * value));
  EXPECT_EQ(out[1], Values(4, 98 * value * value));
  EXPECT_EQ(out[2], Values(2, 98 * value));
}

TEST_F(Concurrency, EightThreadsOnEightStreams) {
  std::vector<std::thread> threads;
  for (int number = 1; number <= 8; ++number) {
    threads.emplace_back([number] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      for (int round = 0; round < 20; ++round) expect_gradients_of(static_cast<float>(number), stream);
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Concurrency, EightThreadsOnTheDefaultStream) {
  std::vector<std::thread> threads;
  for (int number = 1; number <= 8; ++number) {
    threads.emplace_back([number] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int round = 0; round < 10; ++round) expect_gradients_of(static_cast<float>(number), nullptr);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One of eight threads may run an executor that is not repeatable.
TEST_F(Concurrency, ConsumesAnExecutorOnce) {
  for (int round = 0; round < 20; ++round) {
    ConvCall call = small_conv();
    call.mask.values = {0, 0, 0};
    const PhaseOne plan = call.phase_one();
    ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
    std::atomic<int> ran{0}, refused_as_dead{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const aclnnStatus status = aclnnConvolutionBackward(nullptr, 0, plan.executor, stream_);
        ran += status == ACLNN_SUCCESS ? 1 : 0;
        refused_as_dead += status == ACLNN_ERR_INNER_NULLPTR ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(refused_as_dead, 7);
  }
}

// Two operators on two streams, the second reading what the first writes; only the event orders them.
TEST_F(Concurrency, EventsOrderOperatorsOfTwoStreams) {
  aclrtStream second = nullptr;
  aclrtEvent written = nullptr, read = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&written), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&read), ACL_SUCCESS);
  // first: x = 2·dy·w; second: y = 2·x·w. w is 1.
  const DeviceBlock dy(encode(ACL_FLOAT, Values(196, 0))), x(encode(ACL_FLOAT, Values(196, -1)));
  const DeviceBlock y(encode(ACL_FLOAT, Values(196, -1))), w(encode(ACL_FLOAT, Values(4, 1)));
  const auto plan = [&](const DeviceBlock& from, const DeviceBlock& to) {
    ConvCall call = small_conv();
    call.mask.values = {1, 0, 0};
    call.grad_output.data = from.get();
    call.input.data = from.get();
    call.weight.data = w.get();
    call.grad_input.data = to.get();
    const PhaseOne made = call.phase_one();
    EXPECT_EQ(made.status, ACLNN_SUCCESS) << made.message;
    EXPECT_EQ(aclSetAclOpExecutorRepeatable(made.executor), ACLNN_SUCCESS);
    return made;
  };
  const PhaseOne first = plan(dy, x), then = plan(x, y);
  const DeviceBlock first_workspace(static_cast<size_t>(first.workspace_size));
  const DeviceBlock then_workspace(static_cast<size_t>(then.workspace_size));
  for (int round = 1; round <= 50; ++round) {
    const std::vector<uint8_t> data = encode(ACL_FLOAT, Values(196, static_cast<float>(round)));
    ASSERT_EQ(aclrtMemcpy(dy.get(), data.size(), data.data(), data.size(), ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
    ASSERT_EQ(aclnnConvolutionBackward(first_workspace.get(), first.workspace_size, first.executor, stream_),
              0);
    ASSERT_EQ(aclrtRecordEvent(written, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(second, written), ACL_SUCCESS);
    ASSERT_EQ(aclnnConvolutionBackward(then_workspace.get(), then.workspace_size, then.executor, second), 0);
    ASSERT_EQ(aclrtRecordEvent(read, second), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeEvent(read), ACL_SUCCESS);
    ASSERT_EQ(decode(ACL_FLOAT, y.bytes()), Values(196, 4 * static_cast<float>(round)));
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(then.executor), ACLNN_SUCCESS);
}

// Whatever a racing finalize hits, every call answers.
TEST(Lifetimes, MayEndWhileOtherThreadsWork) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ++started;
        for (int call = 0; call < 20; ++call) {
          aclrtStream stream = nullptr;
          aclrtEvent event = nullptr;
          (void)aclrtSetDevice(0);
          if (aclrtCreateStream(&stream) != ACL_SUCCESS) continue;
          if (aclrtCreateEvent(&event) == ACL_SUCCESS) (void)aclrtRecordEvent(event, stream);
          (void)aclrtSynchronizeStream(stream);
          (void)aclrtDestroyEvent(event);
          (void)aclrtDestroyStream(stream);
        }
      });
    }
    while (started < 4) std::this_thread::yield();
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  }
}

}  // namespace
}  // namespace retrograd::acl_test
