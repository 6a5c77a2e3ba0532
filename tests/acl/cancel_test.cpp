// SPDX-License-Identifier: Apache-2.0
// pthread_cancel of a thread inside a call: the call comes to its end, the thread ends after it, the process
// goes on.
#include <pthread.h>

#include <functional>

#include "infinirt.h"
#include "run_call.h"
#include "stream_gate.h"

namespace retrograd::acl_test {
namespace {

struct Cancelled {
  std::function<int()> call;
  int answer = -1;
};

// Cancels itself, so that the request is pending already, then calls.
void* call_when_cancelled(void* argument) {
  auto* const mine = static_cast<Cancelled*>(argument);
  pthread_cancel(pthread_self());
  mine->answer = mine->call();
  pthread_testcancel();
  return nullptr;
}

// What the call answered; the thread must have ended at the point after it.
int answer_of(const std::function<int()>& call) {
  Cancelled cancelled{call};
  pthread_t thread = {};
  EXPECT_EQ(pthread_create(&thread, nullptr, call_when_cancelled, &cancelled), 0);
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  return cancelled.answer;
}

class Cancellation : public AclTest {
 protected:
  // The call waits for the stream, which is held at first.
  int answer_while_held(const std::function<int()>& call) {
    StreamGate gate(stream_);
    gate.open_after(std::chrono::milliseconds(5));
    return answer_of(call);
  }
};

TEST_F(Cancellation, WaitsForTheEndOfCallsThatWait) {
  aclrtContext context = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  EXPECT_EQ(answer_while_held([&] {
              (void)aclrtSetCurrentContext(context);
              return aclrtSynchronizeStream(stream_);
            }),
            ACL_SUCCESS);
  EXPECT_EQ(answer_while_held([&] {
              (void)aclrtSetCurrentContext(context);
              return aclrtSynchronizeStreamWithTimeout(stream_, 60'000);
            }),
            ACL_SUCCESS);
  EXPECT_EQ(answer_while_held([&] {
              (void)aclrtSetCurrentContext(context);
              return aclrtSynchronizeDevice();
            }),
            ACL_SUCCESS);
  EXPECT_EQ(answer_while_held([&] {
              (void)aclrtSetCurrentContext(context);
              (void)aclrtRecordEvent(event, stream_);
              return aclrtSynchronizeEvent(event);
            }),
            ACL_SUCCESS);
  EXPECT_EQ(answer_while_held([&] {
              (void)aclrtSetCurrentContext(context);
              return aclrtDestroyStream(stream_);
            }),
            ACL_SUCCESS);
}

TEST_F(Cancellation, WaitsForTheEndOfAFinalize) {
  EXPECT_EQ(answer_while_held([] { return aclFinalize(); }), ACL_SUCCESS);
  EXPECT_EQ(answer_of([] { return aclInit("/proc/self/stat"); }), ACL_ERROR_PARSE_FILE) << "reads a file";
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
}

TEST_F(Cancellation, WaitsForTheEndOfBothPhases) {
  EXPECT_EQ(answer_of([] {
              (void)aclrtSetDevice(0);
              const auto values = run(ConvCall(), {Values(288, 1), Values(384, 1), Values(108, 1)}, nullptr);
              return values.size() == 3 && values[0].size() == 384 ? 0 : 1;
            }),
            0);
}

TEST(InfiniCancellation, WaitsForTheEndOfCallsThatWait) {
  constexpr size_t kBytes = 16 << 20;
  infinirtStream_t stream = nullptr;
  infinirtEvent_t event = nullptr;
  void* block = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventCreate(&event), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtMalloc(&block, kBytes), INFINI_STATUS_SUCCESS);
  const auto busy = [&] {
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(infinirtMemsetAsync(block, i, kBytes, stream), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infinirtEventRecord(event, stream), INFINI_STATUS_SUCCESS);
  };
  const std::function<int()> waits[] = {
      [&] { return infinirtStreamSynchronize(stream); }, [&] { return infinirtEventSynchronize(event); },
      [&] { return infinirtDeviceSynchronize(); }, [&] { return infinirtStreamWaitEvent(nullptr, event); },
      [&] { return infinirtFree(block); }};
  for (const auto& wait : waits) {
    busy();
    EXPECT_EQ(answer_of(wait), INFINI_STATUS_SUCCESS);
  }
  EXPECT_EQ(infinirtEventDestroy(event), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
}

}  // namespace
}  // namespace retrograd::acl_test
