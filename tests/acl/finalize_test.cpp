// SPDX-License-Identifier: Apache-2.0
// aclFinalize while other threads are at work: new work is refused, what has begun comes to its end, and only
// then is memory taken away.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "infinirt.h"
#include "run_call.h"
#include "stream_gate.h"

namespace retrograd::acl_test {
namespace {

constexpr int kThreads = 8;
constexpr int kRing = 1024;  // tasks that a stream of the CPU holds

// A convolution in device memory of its own, which is left to aclFinalize.
struct Work {
  Work() {
    call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 8, 128, 128};
    call.weight.shape = call.grad_weight.shape = {8, 8, 3, 3};
    call.padding = {1, 1};
    call.grad_bias.shape = {8};
    call.bias_sizes = {8};
    for (TensorArg* tensor :
         {&call.grad_output, &call.input, &call.weight, &call.grad_input, &call.grad_weight, &call.grad_bias})
      allocate(&tensor->data, block_bytes(*tensor));
    plan = call.phase_one();
    EXPECT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
    allocate(&workspace, static_cast<size_t>(plan.workspace_size) + 1);
  }
  // Large enough for the system to take back at once: who touches it after the free is killed.
  static void allocate(void** block, size_t bytes) {
    const size_t room = std::max(bytes, size_t{34} << 20);
    ASSERT_EQ(aclrtMalloc(block, room, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(*block, room, 0, bytes), ACL_SUCCESS);
  }

  ConvCall call;
  PhaseOne plan;
  void* workspace = nullptr;
};

// The stream is held and full: threads are inside phase two and wait for room in it. When the stream goes on
// they get it, after aclFinalize has begun.
TEST(Finalize, RefusesNewWorkAndFreesWhenNothingRunsAnyMore) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::vector<Work> work(kThreads);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  std::vector<std::thread> threads;
  {
    StreamGate gate(stream);
    char byte = 0;
    for (int i = 1; i < kRing; ++i) ASSERT_EQ(aclrtMemsetAsync(&byte, 1, 0, 1, stream), ACL_SUCCESS);
    std::atomic<int> inside{0};
    for (Work& mine : work) {
      threads.emplace_back([&, stream] {
        ++inside;
        int answer =
            aclnnConvolutionBackward(mine.workspace, mine.plan.workspace_size, mine.plan.executor, stream);
        while (answer == ACLNN_SUCCESS) {
          mine.plan = mine.call.phase_one();
          answer = mine.plan.status;
        }
        EXPECT_EQ(answer, ACLNN_ERR_RUNTIME_ERROR);
        // From now on nothing else is answered.
        EXPECT_TRUE(refused(mine.call.phase_one(), ACLNN_ERR_RUNTIME_ERROR, {"aclInit", "aclFinalize"}));
        EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream), ACL_ERROR_UNINITIALIZE, {"aclInit"}));
        void* block = nullptr;
        EXPECT_TRUE(failed_with(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_UNINITIALIZE,
                                {"aclFinalize"}));
      });
    }
    while (inside < kThreads) std::this_thread::yield();
    std::thread ending([] { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); });
    aclrtRunMode mode = ACL_HOST;
    while (aclrtGetRunMode(&mode) == ACL_SUCCESS) std::this_thread::yield();
    gate.open();
    ending.join();
  }
  for (std::thread& thread : threads) thread.join();
}

// What every kind of call may be doing when it comes.
TEST(Finalize, MayMeetEveryKindOfCall) {
  using Calls = std::function<void()>;
  const std::vector<Calls> kinds = {
      [] {
        void* block = nullptr;
        if (aclrtMalloc(&block, 1 << 16, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return;
        (void)aclrtMemset(block, 1 << 16, 1, 1 << 16);
        (void)aclrtMemsetAsync(block, 1 << 16, 2, 1 << 16, nullptr);
        // Where a reset comes in between, the stream may still be at it: aclFinalize frees the block.
        if (aclrtSynchronizeDevice() == ACL_SUCCESS) (void)aclrtFree(block);
      },
      [] {
        aclrtStream stream = nullptr;
        aclrtEvent event = nullptr;
        if (aclrtCreateStream(&stream) != ACL_SUCCESS) return;
        if (aclrtCreateEvent(&event) == ACL_SUCCESS) (void)aclrtRecordEvent(event, stream);
        (void)aclrtStreamWaitEvent(nullptr, event);
        (void)aclrtSynchronizeEvent(event);
        (void)aclrtDestroyEvent(event);
        (void)aclrtDestroyStreamForce(stream);
      },
      [] {
        aclrtContext context = nullptr;
        if (aclrtCreateContext(&context, 0) != ACL_SUCCESS) return;
        (void)aclrtSynchronizeStream(nullptr);
        (void)aclrtDestroyContext(context);
      },
      [] { (void)aclrtResetDevice(0); },
      [] { (void)aclrtResetDeviceForce(0); },
  };
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    std::atomic<size_t> at_work{0};
    std::vector<std::thread> threads;
    for (const Calls& calls : kinds) {
      threads.emplace_back([&] {
        for (int i = 0; aclrtSetDevice(0) == ACL_SUCCESS; ++i) {
          calls();
          if (i == 0) ++at_work;
        }
      });
    }
    while (at_work < kinds.size()) std::this_thread::yield();
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    for (std::thread& thread : threads) thread.join();
  }
}

// A stream of infinirt works on a block of aclrtMalloc: it is finished before the block goes.
TEST(Finalize, WaitsForStreamsOfInfinirt) {
  constexpr size_t kBytes = 64 << 20;
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  infinirtStream_t stream = nullptr;
  infinirtEvent_t done = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventCreate(&done), INFINI_STATUS_SUCCESS);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(infinirtMemsetAsync(block, i, kBytes, stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventRecord(done, stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  infinirtEventStatus_t status = INFINIRT_EVENT_NOT_READY;
  EXPECT_EQ(infinirtEventQuery(done, &status), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(status, INFINIRT_EVENT_COMPLETE);
  EXPECT_EQ(infinirtEventDestroy(done), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
}

// A byte that another thread is writing, which is what the test waits for: no race to report.
[[gnu::noinline, gnu::no_sanitize_thread]] unsigned char peek(const void* address) {
  return *static_cast<const volatile unsigned char*>(address);
}

// The same of a call that runs on its caller's thread.
TEST(Finalize, WaitsForCallsOfInfinirt) {
  constexpr size_t kBytes = 64 << 20;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    void* block = nullptr;
    ASSERT_EQ(aclrtMalloc(&block, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(block, kBytes, 0, 1), ACL_SUCCESS);
    std::thread filling([&] {
      EXPECT_EQ(infinirtMemset(block, 1, kBytes), INFINI_STATUS_SUCCESS) << "not refused: begun before";
    });
    while (peek(block) == 0) std::this_thread::yield();
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    filling.join();
  }
}

// An init that comes while a finalize drains begins after it: what the new session makes is not taken away by
// the end of the old one.
TEST(Finalize, IsOverBeforeTheNextInitBegins) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  {
    StreamGate gate(nullptr);
    std::thread ending([] { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); });
    aclrtRunMode mode = ACL_HOST;
    while (aclrtGetRunMode(&mode) == ACL_SUCCESS) std::this_thread::yield();
    gate.open_after(std::chrono::milliseconds(100));
    EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    void* block = nullptr;
    aclrtEvent event = nullptr;
    EXPECT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    ending.join();
    EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  }
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
}  // namespace retrograd::acl_test
