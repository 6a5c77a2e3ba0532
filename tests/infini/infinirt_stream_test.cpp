// SPDX-License-Identifier: Apache-2.0
// infinirt: streams run in order and events order them; dead, foreign and null handles are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

// Long enough that a stream which did not wait would be seen not to have waited.
constexpr size_t kLarge = size_t{16} << 20;

class Stream {
 public:
  Stream() { EXPECT_EQ(infinirtStreamCreate(&stream_), INFINI_STATUS_SUCCESS); }
  ~Stream() { EXPECT_EQ(infinirtStreamDestroy(stream_), INFINI_STATUS_SUCCESS); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  infinirtStream_t get() const { return stream_; }

 private:
  infinirtStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(uint32_t flags = INFINIRT_EVENT_DEFAULT) {
    EXPECT_EQ(infinirtEventCreateWithFlags(&event_, flags), INFINI_STATUS_SUCCESS);
  }
  ~Event() { EXPECT_EQ(infinirtEventDestroy(event_), INFINI_STATUS_SUCCESS); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  infinirtEvent_t get() const { return event_; }

 private:
  infinirtEvent_t event_ = nullptr;
};

infinirtEventStatus_t status_of(const Event& event) {
  auto status = static_cast<infinirtEventStatus_t>(-1);
  EXPECT_EQ(infinirtEventQuery(event.get(), &status), INFINI_STATUS_SUCCESS);
  return status;
}

TEST(InfinirtStream, RunsWorkInOrder) {
  const Stream stream;
  std::vector<char> a(kLarge), b(kLarge), c(kLarge);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 1, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpyAsync(b.data(), a.data(), kLarge, INFINIRT_MEMCPY_H2D, stream.get()),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 2, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpyAsync(c.data(), a.data(), kLarge, INFINIRT_MEMCPY_D2H, stream.get()),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(b, std::vector<char>(kLarge, 1));
  EXPECT_EQ(c, std::vector<char>(kLarge, 2));
}

TEST(InfinirtStream, NullRunsToItsEndBeforeItReturns) {
  std::vector<char> a(kLarge);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 3, kLarge, nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(a, std::vector<char>(kLarge, 3));
  EXPECT_EQ(infinirtStreamSynchronize(nullptr), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtStream, DeviceSynchronizeWaitsForAllOfThem) {
  const Stream streams[3];
  std::vector<char> data[3];
  for (size_t i = 0; i < 3; ++i) {
    data[i].assign(kLarge, 0);
    EXPECT_EQ(infinirtMemsetAsync(data[i].data(), 4, kLarge, streams[i].get()), INFINI_STATUS_SUCCESS);
  }
  EXPECT_EQ(infinirtDeviceSynchronize(), INFINI_STATUS_SUCCESS);
  for (const auto& values : data) EXPECT_EQ(values, std::vector<char>(kLarge, 4));
}

TEST(InfinirtStream, DestroyFinishesTheWorkFirst) {
  std::vector<char> a(kLarge);
  {
    const Stream stream;
    EXPECT_EQ(infinirtMemsetAsync(a.data(), 5, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  }
  EXPECT_EQ(a, std::vector<char>(kLarge, 5));
}

TEST(InfinirtEvent, OrdersTwoStreams) {
  const Stream writer, reader;
  const Event written;
  std::vector<char> a(kLarge), b(kLarge);
  for (char value = 1; value <= 4; ++value) {
    EXPECT_EQ(infinirtMemsetAsync(a.data(), value, kLarge, writer.get()), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infinirtEventRecord(written.get(), writer.get()), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infinirtStreamWaitEvent(reader.get(), written.get()), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infinirtMemcpyAsync(b.data(), a.data(), kLarge, INFINIRT_MEMCPY_D2D, reader.get()),
              INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infinirtStreamSynchronize(reader.get()), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(b, std::vector<char>(kLarge, value));
  }
}

TEST(InfinirtEvent, IsCompleteNoSoonerThanTheWorkBeforeIt) {
  const Stream stream;
  const Event event;
  std::vector<char> a(kLarge);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 6, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventRecord(event.get(), stream.get()), INFINI_STATUS_SUCCESS);
  while (status_of(event) == INFINIRT_EVENT_NOT_READY) {
  }
  EXPECT_EQ(status_of(event), INFINIRT_EVENT_COMPLETE);
  EXPECT_EQ(a, std::vector<char>(kLarge, 6));
}

TEST(InfinirtEvent, SynchronizeWaitsForTheRecord) {
  const Stream stream;
  const Event event(INFINIRT_EVENT_BLOCKING_SYNC | INFINIRT_EVENT_DISABLE_TIMING);
  std::vector<char> a(kLarge);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 7, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventRecord(event.get(), stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventSynchronize(event.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(a, std::vector<char>(kLarge, 7));
}

TEST(InfinirtEvent, NeverRecordedIsCompleteAndHoldsNobodyBack) {
  const Event event;
  const Stream stream;
  EXPECT_EQ(status_of(event), INFINIRT_EVENT_COMPLETE);
  EXPECT_EQ(infinirtEventSynchronize(event.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamWaitEvent(stream.get(), event.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamWaitEvent(nullptr, event.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream.get()), INFINI_STATUS_SUCCESS);
}

TEST(InfinirtEvent, MeasuresTheTimeBetweenTwoRecords) {
  const Stream stream;
  const Event start, end;
  std::vector<char> a(kLarge);
  EXPECT_EQ(infinirtEventRecord(start.get(), stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemsetAsync(a.data(), 8, kLarge, stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventRecord(end.get(), stream.get()), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventSynchronize(end.get()), INFINI_STATUS_SUCCESS);
  float forward = -1, backward = -1;
  ASSERT_EQ(infinirtEventElapsedTime(&forward, start.get(), end.get()), INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  ASSERT_EQ(infinirtEventElapsedTime(&backward, end.get(), start.get()), INFINI_STATUS_SUCCESS);
  EXPECT_GT(forward, 0);
  EXPECT_EQ(backward, -forward);
}

TEST(InfinirtEvent, HasNoTimeUntimedOrUnrecorded) {
  const Event timed, untimed(INFINIRT_EVENT_DISABLE_TIMING), unrecorded;
  EXPECT_EQ(infinirtEventRecord(timed.get(), nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtEventRecord(untimed.get(), nullptr), INFINI_STATUS_SUCCESS);
  float ms = -7;
  constexpr const char* kElapsed = "infinirtEventElapsedTime";
  expect_refused(infinirtEventElapsedTime(&ms, timed.get(), untimed.get()), INFINI_STATUS_BAD_PARAM, kElapsed,
                 {"end event", "without timing"});
  expect_refused(infinirtEventElapsedTime(&ms, untimed.get(), timed.get()), INFINI_STATUS_BAD_PARAM, kElapsed,
                 {"start event", "without timing"});
  expect_refused(infinirtEventElapsedTime(&ms, timed.get(), unrecorded.get()), INFINI_STATUS_BAD_PARAM,
                 kElapsed, {"never recorded"});
  EXPECT_EQ(ms, -7);
}

TEST(InfinirtEvent, TakesTheTwoFlagsAndNoOther) {
  for (uint32_t flags = 0; flags < 4; ++flags) EXPECT_NE(Event(flags).get(), nullptr);
  infinirtEvent_t event = nullptr;
  for (uint32_t flags : {4u, 7u, 0x80000000u})
    expect_refused(infinirtEventCreateWithFlags(&event, flags), INFINI_STATUS_BAD_PARAM,
                   "infinirtEventCreateWithFlags",
                   {("flags is " + std::to_string(flags)).c_str(), "DISABLE_TIMING (1)"});
  EXPECT_EQ(event, nullptr);
}

TEST(InfinirtHandles, NullOnesAreNullPointersWhereNullMeansNothing) {
  const Stream stream;
  const Event event;
  infinirtEventStatus_t status;
  float ms;
  expect_refused(infinirtStreamCreate(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtStreamCreate",
                 {"stream_ptr is null"});
  expect_refused(infinirtStreamWaitEvent(stream.get(), nullptr), INFINI_STATUS_NULL_POINTER,
                 "infinirtStreamWaitEvent", {"event is null"});
  expect_refused(infinirtEventCreate(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtEventCreate",
                 {"event_ptr is null"});
  expect_refused(infinirtEventCreateWithFlags(nullptr, 0), INFINI_STATUS_NULL_POINTER,
                 "infinirtEventCreateWithFlags", {"event_ptr is null"});
  expect_refused(infinirtEventRecord(nullptr, stream.get()), INFINI_STATUS_NULL_POINTER,
                 "infinirtEventRecord", {"event is null"});
  expect_refused(infinirtEventQuery(nullptr, &status), INFINI_STATUS_NULL_POINTER, "infinirtEventQuery",
                 {"event is null"});
  expect_refused(infinirtEventQuery(event.get(), nullptr), INFINI_STATUS_NULL_POINTER, "infinirtEventQuery",
                 {"status_ptr is null"});
  expect_refused(infinirtEventSynchronize(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtEventSynchronize",
                 {"event is null"});
  expect_refused(infinirtEventDestroy(nullptr), INFINI_STATUS_NULL_POINTER, "infinirtEventDestroy",
                 {"event is null"});
  expect_refused(infinirtEventElapsedTime(nullptr, event.get(), event.get()), INFINI_STATUS_NULL_POINTER,
                 "infinirtEventElapsedTime", {"ms_ptr is null"});
  expect_refused(infinirtEventElapsedTime(&ms, nullptr, event.get()), INFINI_STATUS_NULL_POINTER,
                 "infinirtEventElapsedTime", {"start is null"});
  expect_refused(infinirtEventElapsedTime(&ms, event.get(), nullptr), INFINI_STATUS_NULL_POINTER,
                 "infinirtEventElapsedTime", {"end is null"});
  expect_refused(infinirtStreamDestroy(nullptr), INFINI_STATUS_BAD_PARAM, "infinirtStreamDestroy",
                 {"live stream"});
}

TEST(InfinirtHandles, DeadForeignAndMistakenOnesAreRefused) {
  infinirtStream_t dead_stream = nullptr;
  infinirtEvent_t dead_event = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&dead_stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventCreate(&dead_event), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtStreamDestroy(dead_stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtEventDestroy(dead_event), INFINI_STATUS_SUCCESS);
  const Stream stream;
  const Event event;
  char byte = 0;
  void* block = nullptr;
  ASSERT_EQ(infinirtMalloc(&block, 1), INFINI_STATUS_SUCCESS);
  for (infinirtStream_t bad : {dead_stream, static_cast<void*>(&byte), event.get()}) {
    constexpr infiniStatus_t kBad = INFINI_STATUS_BAD_PARAM;
    expect_refused(infinirtStreamDestroy(bad), kBad, "infinirtStreamDestroy", {"stream is", "live stream"});
    expect_refused(infinirtStreamSynchronize(bad), kBad, "infinirtStreamSynchronize", {"stream is"});
    expect_refused(infinirtStreamWaitEvent(bad, event.get()), kBad, "infinirtStreamWaitEvent", {"stream is"});
    expect_refused(infinirtEventRecord(event.get(), bad), kBad, "infinirtEventRecord", {"stream is"});
    expect_refused(infinirtMemcpyAsync(&byte, &byte, 1, INFINIRT_MEMCPY_H2H, bad), kBad,
                   "infinirtMemcpyAsync", {"stream is"});
    expect_refused(infinirtMemsetAsync(&byte, 1, 1, bad), kBad, "infinirtMemsetAsync", {"stream is"});
    expect_refused(infinirtFreeAsync(block, bad), kBad, "infinirtFreeAsync", {"stream is"});
    void* out = nullptr;
    expect_refused(infinirtMallocAsync(&out, 1, bad), kBad, "infinirtMallocAsync", {"stream is"});
    EXPECT_EQ(out, nullptr);
  }
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  for (infinirtEvent_t bad : {dead_event, static_cast<void*>(&byte), stream.get()}) {
    constexpr infiniStatus_t kBad = INFINI_STATUS_BAD_PARAM;
    infinirtEventStatus_t status;
    float ms;
    expect_refused(infinirtEventDestroy(bad), kBad, "infinirtEventDestroy", {"event is", "live event"});
    expect_refused(infinirtEventQuery(bad, &status), kBad, "infinirtEventQuery", {"event is"});
    expect_refused(infinirtEventSynchronize(bad), kBad, "infinirtEventSynchronize", {"event is"});
    expect_refused(infinirtEventRecord(bad, stream.get()), kBad, "infinirtEventRecord", {"event is"});
    expect_refused(infinirtStreamWaitEvent(stream.get(), bad), kBad, "infinirtStreamWaitEvent", {"event is"});
    expect_refused(infinirtEventElapsedTime(&ms, bad, event.get()), kBad, "infinirtEventElapsedTime",
                   {"start is"});
    expect_refused(infinirtEventElapsedTime(&ms, event.get(), bad), kBad, "infinirtEventElapsedTime",
                   {"end is"});
  }
}

}  // namespace
}  // namespace retrograd::infini_test
