// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on streams and events: order, states, times, and what each wrong use is told.
#include <array>

#include "run_call.h"
#include "stream_gate.h"

namespace retrograd::acl_test {
namespace {

constexpr aclError kNull = ACL_ERROR_INVALID_PARAM, kDead = ACL_ERROR_RT_INVALID_HANDLE;

class Streams : public AclTest {};

aclrtStreamStatus state_of(aclrtStream stream) {
  auto status = static_cast<aclrtStreamStatus>(77);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  return status;
}

aclrtEventStatus state_of_event(aclrtEvent event) {
  auto status = static_cast<aclrtEventStatus>(77);
  auto recorded = static_cast<aclrtEventRecordedStatus>(77);
  EXPECT_EQ(aclrtQueryEvent(event, &status), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
  EXPECT_NE(static_cast<int>(status), static_cast<int>(recorded)) << "the two enumerations are reversed";
  return status;
}

TEST_F(Streams, AreRefusedWhenNullWhereOneMustBeNamed) {
  EXPECT_TRUE(failed_with(aclrtCreateStream(nullptr), kNull, {"stream is null"}));
  EXPECT_TRUE(failed_with(aclrtCreateStreamWithConfig(nullptr, 0, 0), kNull, {"stream is null"}));
  EXPECT_TRUE(failed_with(aclrtDestroyStream(nullptr), kNull, {"stream is null"}));
  EXPECT_TRUE(failed_with(aclrtDestroyStreamForce(nullptr), kNull, {"stream is null"}));
  EXPECT_TRUE(failed_with(aclrtStreamQuery(stream_, nullptr), kNull, {"status is null"}));
  EXPECT_TRUE(failed_with(aclrtStreamWaitEvent(stream_, nullptr), kNull, {"event is null"}));
}

TEST_F(Streams, OfNoNameAreTheContextsDefault) {
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(nullptr, 1000), ACL_SUCCESS);
  EXPECT_EQ(state_of(nullptr), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(Streams, ThatAreDeadForeignOrOfAnotherKindAreRefused) {
  aclrtStream dead = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&dead, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(dead), ACL_SUCCESS);
  auto status = static_cast<aclrtStreamStatus>(77);
  char memory[8] = {};
  for (const aclrtStream wrong : {dead, event, static_cast<aclrtStream>(memory)}) {
    const std::vector<std::string> says = {"stream is", "expected a live aclrtStream"};
    EXPECT_TRUE(failed_with(aclrtDestroyStream(wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtDestroyStreamForce(wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtSynchronizeStream(wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtSynchronizeStreamWithTimeout(wrong, 1), kDead, says));
    EXPECT_TRUE(failed_with(aclrtStreamQuery(wrong, &status), kDead, says));
    EXPECT_TRUE(failed_with(aclrtStreamWaitEvent(wrong, event), kDead, says));
    EXPECT_TRUE(failed_with(aclrtRecordEvent(event, wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtResetEvent(event, wrong), kDead, says));
    EXPECT_TRUE(
        failed_with(aclrtMemcpyAsync(memory, 4, memory + 4, 4, ACL_MEMCPY_DEFAULT, wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtMemsetAsync(memory, 4, 1, 4, wrong), kDead, says));
  }
  EXPECT_EQ(static_cast<int>(status), 77);
  EXPECT_EQ(memory[0], 0);
}

TEST_F(Streams, OfAnotherContextAreRefused) {
  aclrtContext other = nullptr;
  ASSERT_EQ(aclrtCreateContext(&other, 0), ACL_SUCCESS);
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  constexpr aclError kForeign = ACL_ERROR_RT_STREAM_CONTEXT;
  const std::vector<std::string> says = {"stream is", "belongs to context"};
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  EXPECT_TRUE(failed_with(aclrtSynchronizeStream(stream_), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtSynchronizeStreamWithTimeout(stream_, 1), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtStreamQuery(stream_, &status), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtStreamWaitEvent(stream_, event), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtRecordEvent(event, stream_), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtDestroyStream(stream_), kForeign, says));
  EXPECT_TRUE(failed_with(aclrtDestroyStreamForce(stream_), kForeign, says));
}

TEST_F(Streams, RefuseTimesBelowMinusOne) {
  EXPECT_TRUE(failed_with(aclrtSynchronizeStreamWithTimeout(stream_, -2), ACL_ERROR_RT_PARAM_INVALID,
                          {"timeout is -2", "-1 to wait for ever"}));
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -1), ACL_SUCCESS);
}

TEST_F(Streams, ThatAreBusySaySoAndTimeOut) {
  aclrtEvent event = nullptr, never = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&never), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(never, stream_), ACL_SUCCESS);
  StreamGate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(state_of(stream_), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_NOT_READY);
  float ms = -1;
  EXPECT_TRUE(failed_with(aclrtEventElapsedTime(&ms, never, event), ACL_ERROR_RT_PARAM_INVALID, {"pending"}));
  EXPECT_EQ(ms, -1);
  EXPECT_TRUE(
      failed_with(aclrtSynchronizeStreamWithTimeout(stream_, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, {}));
  gate.open();
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(state_of(stream_), ACL_STREAM_STATUS_COMPLETE);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_COMPLETE);
}

TEST_F(Streams, FinishWhatIsPendingWhenDestroyed) {
  const DeviceBlock flag(encode(ACL_FLOAT, {0}));
  StreamGate gate(stream_);
  ASSERT_EQ(aclrtMemsetAsync(flag.get(), 4, 0xFF, 4, stream_), ACL_SUCCESS);
  gate.open_after(std::chrono::milliseconds(50));
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(flag.bytes(), std::vector<uint8_t>(4, 0xFF));
}

TEST_F(Streams, DropWhatHasNotStartedWhenDestroyedByForce) {
  const DeviceBlock flag(encode(ACL_FLOAT, {0}));
  StreamGate gate(stream_);
  ASSERT_EQ(aclrtMemsetAsync(flag.get(), 4, 0xFF, 4, stream_), ACL_SUCCESS);
  gate.open_after(std::chrono::milliseconds(500));  // long after the call below has dropped what waits
  EXPECT_EQ(aclrtDestroyStreamForce(stream_), ACL_SUCCESS);
  EXPECT_EQ(flag.bytes(), std::vector<uint8_t>(4, 0));
}

TEST_F(Streams, KeepTheirOrderAndEventsOrderTwoOfThem) {
  aclrtStream second = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  const DeviceBlock first_block(encode(ACL_FLOAT, {0})), second_block(encode(ACL_FLOAT, {0}));
  StreamGate gate(stream_);
  ASSERT_EQ(aclrtMemsetAsync(first_block.get(), 4, 0x11, 4, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
  ASSERT_EQ(
      aclrtMemcpyAsync(second_block.get(), 4, first_block.get(), 4, ACL_MEMCPY_DEVICE_TO_DEVICE, second),
      ACL_SUCCESS);
  gate.open_after(std::chrono::milliseconds(50));
  ASSERT_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
  EXPECT_EQ(second_block.bytes(), std::vector<uint8_t>(4, 0x11));
}

class Events : public AclTest {};

TEST_F(Events, ThatWereNeverRecordedAreNotReadyAndNobodyWaitsForThem) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  float ms = -1;
  EXPECT_TRUE(
      failed_with(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_PARAM_INVALID, {"never recorded"}));
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(Events, CompleteAndAreResetToNeverRecorded) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtResetEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_NOT_READY);
  EXPECT_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS) << "on the default stream";
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_COMPLETE);
}

TEST_F(Events, TellTheTimeBetweenThem) {
  aclrtEvent start = nullptr, end = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&start), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(start, stream_), ACL_SUCCESS);
  StreamGate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(end, stream_), ACL_SUCCESS);
  gate.open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  float forth = 0, back = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&forth, start, end), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventElapsedTime(&back, end, start), ACL_SUCCESS);
  EXPECT_GT(forth, 0);
  EXPECT_EQ(back, -forth);
}

TEST_F(Events, MadeWithoutATimeLineHaveNoTime) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  float ms = -1;
  EXPECT_TRUE(
      failed_with(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_PARAM_INVALID, {"without timing"}));
  EXPECT_EQ(ms, -1);
}

TEST_F(Events, ThatAreNullAreRefused) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  float ms = 0;
  aclrtEventStatus status = ACL_EVENT_STATUS_COMPLETE;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  EXPECT_TRUE(failed_with(aclrtCreateEvent(nullptr), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtCreateEventWithFlag(nullptr, 0), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtDestroyEvent(nullptr), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtRecordEvent(nullptr, stream_), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtResetEvent(nullptr, stream_), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtQueryEvent(nullptr, &status), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtQueryEvent(event, nullptr), kNull, {"status is null"}));
  EXPECT_TRUE(failed_with(aclrtQueryEventStatus(nullptr, &recorded), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtQueryEventStatus(event, nullptr), kNull, {"status is null"}));
  EXPECT_TRUE(failed_with(aclrtSynchronizeEvent(nullptr), kNull, {"event is null"}));
  EXPECT_TRUE(failed_with(aclrtEventElapsedTime(nullptr, event, event), kNull, {"ms is null"}));
  EXPECT_TRUE(failed_with(aclrtEventElapsedTime(&ms, nullptr, event), kNull, {"startEvent is null"}));
  EXPECT_TRUE(failed_with(aclrtEventElapsedTime(&ms, event, nullptr), kNull, {"endEvent is null"}));
}

TEST_F(Events, ThatAreDeadOrOfAnotherKindAreRefused) {
  aclrtEvent dead = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&dead), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyEvent(dead), ACL_SUCCESS);
  float ms = 0;
  aclrtEventStatus status = ACL_EVENT_STATUS_COMPLETE;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  for (const aclrtEvent wrong : {dead, stream_, static_cast<void*>(&ms)}) {
    const std::vector<std::string> says = {"vent is", "expected a live aclrtEvent"};
    EXPECT_TRUE(failed_with(aclrtDestroyEvent(wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtRecordEvent(wrong, stream_), kDead, says));
    EXPECT_TRUE(failed_with(aclrtResetEvent(wrong, stream_), kDead, says));
    EXPECT_TRUE(failed_with(aclrtQueryEvent(wrong, &status), kDead, says));
    EXPECT_TRUE(failed_with(aclrtQueryEventStatus(wrong, &recorded), kDead, says));
    EXPECT_TRUE(failed_with(aclrtSynchronizeEvent(wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtStreamWaitEvent(stream_, wrong), kDead, says));
    EXPECT_TRUE(failed_with(aclrtEventElapsedTime(&ms, wrong, wrong), kDead, says));
  }
}

TEST_F(Events, OutliveTheStreamTheyWereRecordedOn) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(state_of_event(event), ACL_EVENT_STATUS_COMPLETE);
}

}  // namespace
}  // namespace retrograd::acl_test
