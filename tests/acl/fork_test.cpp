// SPDX-License-Identifier: Apache-2.0
// A forked child: nothing the parent made lives there, every call says so, and what it makes itself works.
#include <atomic>
#include <thread>

#include "forked_child.h"
#include "run_call.h"
#include "stream_gate.h"

namespace retrograd::acl_test {
namespace {

using testing::in_child;

constexpr aclError kUninitialised = ACL_ERROR_UNINITIALIZE;

void expect_own_session_works() {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  for (aclrtStream each : {stream, aclrtStream{}}) {
    ConvCall call;  // large enough to be shared out over the threads of the pool
    call.grad_output.shape = call.input.shape = call.grad_input.shape = {4, 2, 32, 32};
    call.weight.shape = call.grad_weight.shape = {2, 2, 1, 1};
    call.grad_bias.shape = {2};
    call.bias_sizes = {2};
    const auto out = run(call, {Values(8192, 1), Values(8192, 2), Values(4, 3)}, each);
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0], Values(8192, 6));
    EXPECT_EQ(out[1], Values(4, 8192));
    EXPECT_EQ(out[2], Values(2, 4096));
  }
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

class Fork : public AclTest {};

// The parent's stream is busy, and its worker exists in the parent only.
TEST_F(Fork, SynchronisingAnInheritedStreamIsRefused) {
  StreamGate gate(stream_);
  EXPECT_TRUE(in_child([&] {
    EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream_), kUninitialised, {"aclInit", "fork()"}));
    EXPECT_TRUE(failed_with(aclrtSynchronizeStream(nullptr), kUninitialised, {"fork()"}));
    EXPECT_TRUE(failed_with(aclrtSynchronizeDevice(), kUninitialised, {"fork()"}));
    EXPECT_TRUE(failed_with(aclFinalize(), kUninitialised, {"fork()"}));
  }));
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS) << "the parent goes on";
}

TEST_F(Fork, EverythingInheritedIsDeadInTheChild) {
  aclrtEvent event = nullptr;
  aclrtContext context = nullptr;
  void* block = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  const int64_t one = 1;
  aclTensor* tensor = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, block);
  const PhaseOne plan = ConvCall().phase_one();
  ASSERT_EQ(plan.status, ACLNN_SUCCESS);
  EXPECT_TRUE(in_child([&] {
    // Before the child's own aclInit, and after it.
    EXPECT_TRUE(failed_with(aclrtSynchronizeEvent(event), kUninitialised, {"fork()"}));
    EXPECT_TRUE(failed_with(aclrtFree(block), kUninitialised, {"fork()"}));
    EXPECT_TRUE(failed_with(aclDestroyTensor(tensor), ACLNN_ERR_INNER_NULLPTR, {"tensor is", "fork()"}));
    EXPECT_TRUE(failed_with(aclnnConvolutionBackward(nullptr, 0, plan.executor, stream_),
                            ACLNN_ERR_INNER_NULLPTR, {"executor is", "fork()"}));
    EXPECT_TRUE(refused(ConvCall().phase_one(), ACLNN_ERR_RUNTIME_ERROR, {"aclInit", "fork()"}));
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_TRUE(failed_with(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_CONTEXT_NULL, {"aclrtSetDevice"}));
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_TRUE(
        failed_with(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_INVALID_HANDLE, {"stream is", "fork()"}));
    EXPECT_TRUE(
        failed_with(aclrtDestroyStream(stream_), ACL_ERROR_RT_INVALID_HANDLE, {"stream is", "fork()"}));
    EXPECT_TRUE(
        failed_with(aclrtSynchronizeEvent(event), ACL_ERROR_RT_INVALID_HANDLE, {"event is", "fork()"}));
    EXPECT_TRUE(failed_with(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE, {"event is", "fork()"}));
    EXPECT_TRUE(
        failed_with(aclrtSetCurrentContext(context), ACL_ERROR_RT_INVALID_HANDLE, {"context is", "fork()"}));
    EXPECT_TRUE(failed_with(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID, {"devPtr is", "fork()"}));
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  }));
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(plan.executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
}

TEST_F(Fork, AChildWorksWithWhatItMakesItself) {
  EXPECT_TRUE(in_child(expect_own_session_works));
  EXPECT_TRUE(in_child([] {
    expect_own_session_works();
    EXPECT_TRUE(in_child(expect_own_session_works)) << "and so does a child of it";
  }));
}

// Whatever another thread of the parent holds at that moment, its locks are not the child's.
TEST_F(Fork, MayComeWhileOtherThreadsCall) {
#ifdef RG_ADDRESS_SANITIZER
  GTEST_SKIP()
      << "the address sanitizer's own locks stay held in a child of a process whose threads allocate";
#endif
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      while (!over) {
        aclrtStream stream = nullptr;
        void* block = nullptr;
        ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        for (int call = 0; call < 20; ++call) {
          ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
          ASSERT_EQ(aclrtMemsetAsync(block, 64, 0, 64, stream), ACL_SUCCESS);
          ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
          ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
        }
        ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      }
    });
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(in_child(expect_own_session_works));
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace retrograd::acl_test
