// SPDX-License-Identifier: Apache-2.0
// Events of the CPU: order between streams, records that move, states, times.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "gate.h"
#include "host_fixture.h"
#include "runtime/host/host_device.h"

namespace retrograd::runtime {
namespace {

TEST(Event, OrdersTwoStreams) {
  Gate gate;
  int value = 0;  // plain: only the event orders the two accesses
  int seen = -1;
  const auto event = make_event();
  const auto writer = make_stream();
  const auto reader = make_stream();
  RG_EXPECT_OK(writer->submit([&](ExecutionContext&) {
    gate.wait();
    value = 7;
  }));
  RG_EXPECT_OK(writer->record(event));
  RG_EXPECT_OK(reader->wait(event));
  RG_EXPECT_OK(reader->submit([&](ExecutionContext&) { seen = value; }));
  EXPECT_EQ(reader->synchronize(std::chrono::milliseconds(1)).code(), Code::kTimeout);
  gate.open();
  RG_EXPECT_OK(reader->synchronize());
  EXPECT_EQ(seen, 7);
}

TEST(Event, OrdersARingOfStreams) {
  constexpr size_t kStreams = 5;
  constexpr int kRounds = 50;
  std::vector<size_t> order;
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Event>> events;
  for (size_t i = 0; i < kStreams; ++i) {
    streams.push_back(make_stream());
    events.push_back(make_event(false));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kStreams; ++i) {
      RG_EXPECT_OK(streams[i]->wait(events[(i + kStreams - 1) % kStreams]));
      RG_EXPECT_OK(streams[i]->submit([&order, i](ExecutionContext&) { order.push_back(i); }));
      RG_EXPECT_OK(streams[i]->record(events[i]));
    }
  }
  RG_EXPECT_OK(events.back()->synchronize());
  ASSERT_EQ(order.size(), kStreams * kRounds);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i % kStreams);
  for (const auto& stream : streams) RG_EXPECT_OK(stream->synchronize());
}

TEST(Event, StateGoesFromUnrecordedToPendingToComplete) {
  Gate gate;
  const auto event = make_event();
  const auto stream = make_stream();
  EXPECT_EQ(event->state(), EventState::kUnrecorded);
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->record(event));
  EXPECT_EQ(event->state(), EventState::kPending);
  gate.open();
  RG_EXPECT_OK(event->synchronize());
  EXPECT_EQ(event->state(), EventState::kComplete);
  EXPECT_TRUE(stream->idle());
  event->reset();
  EXPECT_EQ(event->state(), EventState::kUnrecorded);
}

TEST(Event, NeverRecordedHoldsNobodyBack) {
  const auto event = make_event();
  const auto stream = make_stream();
  RG_EXPECT_OK(event->synchronize());
  RG_EXPECT_OK(stream->wait(event));
  RG_EXPECT_OK(stream->synchronize());
}

TEST(Event, RecordingAgainMovesThePoint) {
  Gate gate;
  const auto event = make_event();
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->record(event));
  RG_EXPECT_OK(event->synchronize());
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->record(event));
  EXPECT_EQ(event->state(), EventState::kPending);
  gate.open();
  RG_EXPECT_OK(event->synchronize());
  EXPECT_EQ(event->state(), EventState::kComplete);
}

TEST(Event, ALaterRecordOnAnotherStreamMayCompleteFirstAndKeepsItsTime) {
  Gate gate;
  const auto start = make_event();
  const auto event = make_event();
  const auto blocked = make_stream();
  const auto free_running = make_stream();
  RG_EXPECT_OK(free_running->record(start));
  RG_EXPECT_OK(blocked->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(blocked->record(event));
  RG_EXPECT_OK(free_running->record(event));
  RG_EXPECT_OK(event->synchronize());
  EXPECT_EQ(event->state(), EventState::kComplete);
  const float elapsed = event->elapsed_since(*start).value();
  gate.open();
  RG_EXPECT_OK(blocked->synchronize());
  // The overtaken record changes nothing when it is reached at last.
  EXPECT_EQ(event->state(), EventState::kComplete);
  EXPECT_EQ(event->elapsed_since(*start).value(), elapsed);
}

TEST(Event, WhoWaitedBeforeARecordMovesWaitsForTheOldOne) {
  Gate old_gate, new_gate;
  bool old_reached = false;
  const auto event = make_event();
  const auto first = make_stream();
  const auto second = make_stream();
  const auto waiter = make_stream();
  bool seen = false;
  RG_EXPECT_OK(first->submit([&](ExecutionContext&) { old_reached = old_gate.wait(); }));
  RG_EXPECT_OK(first->record(event));
  RG_EXPECT_OK(waiter->wait(event));
  RG_EXPECT_OK(waiter->submit([&](ExecutionContext&) { seen = old_reached; }));
  RG_EXPECT_OK(second->submit([&](ExecutionContext&) { new_gate.wait(); }));
  RG_EXPECT_OK(second->record(event));
  // Not held back by the new record, which is still pending when this returns.
  old_gate.open();
  RG_EXPECT_OK(waiter->synchronize());
  EXPECT_TRUE(seen);
  EXPECT_EQ(event->state(), EventState::kPending);
  new_gate.open();
  RG_EXPECT_OK(event->synchronize());
}

TEST(Event, AWaitStillHoldsWhenItsEventIsRecordedElsewhereAndComplete) {
  Gate gate;
  int value = 0;
  int seen = -1;
  const auto event = make_event();
  const auto slow = make_stream();
  const auto quick = make_stream();
  const auto waiter = make_stream();
  RG_EXPECT_OK(slow->submit([&](ExecutionContext&) {
    gate.wait();
    value = 3;
  }));
  RG_EXPECT_OK(slow->record(event));
  RG_EXPECT_OK(waiter->wait(event));
  RG_EXPECT_OK(waiter->submit([&](ExecutionContext&) { seen = value; }));
  RG_EXPECT_OK(quick->record(event));
  RG_EXPECT_OK(event->synchronize());
  EXPECT_FALSE(waiter->idle());
  gate.open();
  RG_EXPECT_OK(waiter->synchronize());
  EXPECT_EQ(seen, 3);
}

TEST(Event, ResettingDoesNotReleaseWhoWaitsAlready) {
  Gate gate;
  const auto event = make_event();
  const auto stream = make_stream();
  const auto waiter = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->record(event));
  RG_EXPECT_OK(waiter->wait(event));
  event->reset();
  EXPECT_FALSE(waiter->idle());
  gate.open();
  RG_EXPECT_OK(waiter->synchronize());
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(event->state(), EventState::kUnrecorded);
}

TEST(Event, WaitingForARecordOfTheSameStreamIsNoDeadlock) {
  int ran = 0;
  const auto event = make_event();
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->record(event));
  RG_EXPECT_OK(stream->wait(event));
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(Event, ATaskThatWaitsForALaterRecordOfItsStreamIsRefused) {
  Gate recorded;
  Status refusal;
  const auto event = make_event();
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    if (recorded.wait()) refusal = event->synchronize();
  }));
  RG_EXPECT_OK(stream->record(event));
  recorded.open();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(refusal.code(), Code::kInvalidArgument);
}

TEST(Event, MayBeDestroyedWhilePending) {
  Gate gate;
  int ran = 0;
  auto event = make_event();
  const auto stream = make_stream();
  const auto waiter = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->record(event));
  RG_EXPECT_OK(waiter->wait(event));
  RG_EXPECT_OK(waiter->submit([&](ExecutionContext&) { ++ran; }));
  event.reset();
  gate.open();
  RG_EXPECT_OK(waiter->synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(Event, OutlivesItsStream) {
  const auto start = make_event();
  const auto end = make_event();
  auto stream = make_stream();
  RG_EXPECT_OK(stream->record(start));
  RG_EXPECT_OK(stream->record(end));
  stream.reset();
  EXPECT_EQ(end->state(), EventState::kComplete);
  RG_EXPECT_OK(end->synchronize());
  EXPECT_TRUE(end->elapsed_since(*start).is_ok());
}

TEST(Event, TimesGrowAlongAStreamAndCoverItsWork) {
  constexpr auto kWork = std::chrono::milliseconds(2);
  const auto start = make_event();
  const auto middle = make_event();
  const auto end = make_event();
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->record(start));
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    const auto until = std::chrono::steady_clock::now() + kWork;
    while (std::chrono::steady_clock::now() < until) {
    }
  }));
  RG_EXPECT_OK(stream->record(middle));
  RG_EXPECT_OK(stream->record(end));
  RG_EXPECT_OK(end->synchronize());
  const float to_middle = middle->elapsed_since(*start).value();
  const float to_end = end->elapsed_since(*start).value();
  EXPECT_GE(to_middle, static_cast<float>(kWork.count()));
  EXPECT_GE(to_end, to_middle);
  EXPECT_EQ(start->elapsed_since(*start).value(), 0.0F);
  EXPECT_EQ(start->elapsed_since(*end).value(), -to_end);
}

TEST(Event, ElapsedTimeSaysWhichEventHasNoneAndWhy) {
  Gate gate;
  const auto recorded = make_event();
  const auto unrecorded = make_event();
  const auto pending = make_event();
  const auto untimed = make_event(false);
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->record(recorded));
  RG_EXPECT_OK(stream->record(untimed));
  RG_EXPECT_OK(stream->synchronize());
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->record(pending));
  const auto refusal = [](const Event& end, const Event& start) {
    const auto elapsed = end.elapsed_since(start);
    EXPECT_EQ(elapsed.status().code(), Code::kInvalidArgument);
    return elapsed.status().message();
  };
  EXPECT_EQ(refusal(*unrecorded, *recorded),
            "the end event has no time: it was never recorded, or was reset since");
  EXPECT_EQ(refusal(*recorded, *unrecorded),
            "the start event has no time: it was never recorded, or was reset since");
  EXPECT_EQ(refusal(*pending, *recorded), "the end event has no time: its latest record is still pending");
  EXPECT_EQ(refusal(*recorded, *pending), "the start event has no time: its latest record is still pending");
  EXPECT_EQ(refusal(*untimed, *recorded), "the end event has no time: it was created without timing");
  EXPECT_EQ(refusal(*recorded, *untimed), "the start event has no time: it was created without timing");
  gate.open();
  RG_EXPECT_OK(stream->synchronize());
}

TEST(Event, BelongsToItsDevice) {
  HostDevice another(1);
  const auto foreign = make_event(true, another);
  const auto event = make_event();
  const auto stream = make_stream();
  EXPECT_EQ(&foreign->device(), &another);
  const Status refusal = stream->record(foreign);
  EXPECT_EQ(refusal.code(), Code::kWrongDevice);
  EXPECT_EQ(refusal.message(),
            "the event is of cpu:1, the stream of cpu:0; an event is recorded on its own device");
  EXPECT_EQ(foreign->state(), EventState::kUnrecorded);
  RG_EXPECT_OK(make_stream(another)->record(foreign));
  RG_EXPECT_OK(stream->record(event));
  RG_EXPECT_OK(foreign->synchronize());
  RG_EXPECT_OK(event->synchronize());
  RG_EXPECT_OK(stream->wait(foreign));
  EXPECT_EQ(event->elapsed_since(*foreign).status().code(), Code::kWrongDevice);
}

TEST(Event, NullIsRefused) {
  const auto stream = make_stream();
  EXPECT_EQ(stream->record(nullptr).code(), Code::kNullArgument);
  EXPECT_EQ(stream->wait(nullptr).code(), Code::kNullArgument);
  EXPECT_EQ(cpu().null_stream()->record(nullptr).code(), Code::kNullArgument);
  EXPECT_EQ(cpu().null_stream()->wait(nullptr).code(), Code::kNullArgument);
}

}  // namespace
}  // namespace retrograd::runtime
