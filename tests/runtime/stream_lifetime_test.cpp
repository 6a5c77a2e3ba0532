// SPDX-License-Identifier: Apache-2.0
// The ends of streams: destroyed with work pending, from inside a task, abandoned.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "gate.h"
#include "host_fixture.h"
#include "runtime/stream.h"

namespace retrograd::runtime {
namespace {

TEST(StreamLifetime, DestructionFinishesWhatIsPending) {
  Gate gate;
  int ran = 0;
  auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  for (int i = 0; i < 100; ++i) RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
  gate.open();
  stream.reset();
  EXPECT_EQ(ran, 100);
}

TEST(StreamLifetime, DestructionReleasesWhatTasksHeld) {
  auto held = std::make_shared<int>(0);
  auto stream = make_stream();
  for (int i = 0; i < 10; ++i) RG_EXPECT_OK(stream->submit([held](ExecutionContext&) {}));
  stream.reset();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StreamLifetime, WhatATaskHeldIsReleasedWhenItCountsAsDone) {
  auto held = std::make_shared<int>(0);
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([held](ExecutionContext&) {}));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StreamLifetime, AbandonDropsWhatHasNotStartedAndFinishesWhatRuns) {
  Gate started, gate;
  bool first_done = false;
  int ran = 0;
  auto held = std::make_shared<int>(0);
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    started.open();
    first_done = gate.wait();
  }));
  for (int i = 0; i < 100; ++i) RG_EXPECT_OK(stream->submit([&ran, held](ExecutionContext&) { ++ran; }));
  ASSERT_TRUE(started.wait());
  stream->abandon();
  gate.open();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_TRUE(first_done);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(stream->idle());
}

TEST(StreamLifetime, AnAbandonedStreamTakesNewWork) {
  int ran = 0;
  const auto stream = make_stream();
  stream->abandon();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(StreamLifetime, AbandonedThenDestroyedRunsNothingMore) {
  Gate started, gate;
  int ran = 0;
  auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    started.open();
    gate.wait();
  }));
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
  ASSERT_TRUE(started.wait());
  stream->abandon();
  gate.open();
  stream.reset();
  EXPECT_EQ(ran, 0);
}

TEST(StreamLifetime, EventsOfDroppedRecordsCompleteWithoutATime) {
  Gate started, gate;
  const auto start = make_event();
  const auto dropped = make_event();
  const auto stream = make_stream();
  const auto waiting = make_stream();
  RG_EXPECT_OK(stream->record(start));
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    started.open();
    gate.wait();
  }));
  RG_EXPECT_OK(stream->record(dropped));
  RG_EXPECT_OK(waiting->wait(dropped));
  ASSERT_TRUE(started.wait());
  stream->abandon();
  EXPECT_EQ(dropped->state(), EventState::kPending);
  gate.open();
  RG_EXPECT_OK(dropped->synchronize());
  RG_EXPECT_OK(waiting->synchronize());
  EXPECT_EQ(dropped->state(), EventState::kComplete);
  const auto elapsed = dropped->elapsed_since(*start);
  EXPECT_EQ(elapsed.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(elapsed.status().message(),
            "the end event has no time: its latest record was dropped with the work of an abandoned stream");
}

TEST(StreamLifetime, TheLastReferenceMayBeDroppedByATaskOfTheStream) {
  // Shared: the worker outlives the stream, and what follows in it may outlive this test.
  struct Witness {
    Gate alone, last_ran;
  };
  const auto witness = std::make_shared<Witness>();
  std::weak_ptr<Stream> observed;
  {
    auto stream = make_stream();
    observed = stream;
    RG_EXPECT_OK(stream->submit([witness, held = stream](ExecutionContext&) mutable {
      witness->alone.wait();
      held.reset();
    }));
    RG_EXPECT_OK(stream->submit([witness](ExecutionContext&) { witness->last_ran.open(); }));
  }
  EXPECT_FALSE(observed.expired());
  witness->alone.open();
  EXPECT_TRUE(witness->last_ran.wait());
  EXPECT_TRUE(observed.expired());
}

TEST(StreamLifetime, ATaskMayDropTheLastReferenceToAStreamThatWaitsForIt) {
  struct Witness {
    Gate alone, second_ran;
  };
  const auto witness = std::make_shared<Witness>();
  const auto event = make_event();
  const auto first = make_stream();
  auto second = make_stream();
  // The second stream waits for the first, and the first destroys the second: joining would never end.
  RG_EXPECT_OK(first->submit([witness, held = second](ExecutionContext&) mutable {
    witness->alone.wait();
    held.reset();
  }));
  RG_EXPECT_OK(first->record(event));
  RG_EXPECT_OK(second->wait(event));
  RG_EXPECT_OK(second->submit([witness](ExecutionContext&) { witness->second_ran.open(); }));
  second.reset();
  witness->alone.open();
  RG_EXPECT_OK(first->synchronize(std::chrono::seconds(30)));
  EXPECT_TRUE(witness->second_ran.wait());
}

}  // namespace
}  // namespace retrograd::runtime
