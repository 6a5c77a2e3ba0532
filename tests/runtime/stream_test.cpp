// SPDX-License-Identifier: Apache-2.0
// Streams of the CPU: order, overlap, synchronising, a full queue, no allocation.
#include "runtime/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "allocation_counter.h"
#include "gate.h"
#include "host_fixture.h"
#include "runtime/host/host_device.h"
#include "runtime/host/task_queue.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {
namespace {

using std::chrono::milliseconds;

TEST(Stream, RunsTasksInTheOrderOfSubmission) {
  std::vector<int> order;
  const auto stream = make_stream();
  for (int i = 0; i < 500; ++i)
    RG_EXPECT_OK(stream->submit([&order, i](ExecutionContext&) { order.push_back(i); }));
  RG_EXPECT_OK(stream->synchronize());
  ASSERT_EQ(order.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Stream, SubmittingReturnsBeforeTheTaskIsDone) {
  Gate gate;
  bool waited = false;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { waited = gate.wait(); }));
  EXPECT_FALSE(stream->idle());
  gate.open();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_TRUE(waited);
  EXPECT_TRUE(stream->idle());
}

TEST(Stream, TwoStreamsRunAtTheSameTime) {
  Gate first_started, second_started;
  bool first_met = false, second_met = false;
  const auto first = make_stream();
  const auto second = make_stream();
  RG_EXPECT_OK(first->submit([&](ExecutionContext&) {
    first_started.open();
    first_met = second_started.wait();
  }));
  RG_EXPECT_OK(second->submit([&](ExecutionContext&) {
    second_started.open();
    second_met = first_started.wait();
  }));
  RG_EXPECT_OK(first->synchronize());
  RG_EXPECT_OK(second->synchronize());
  EXPECT_TRUE(first_met);
  EXPECT_TRUE(second_met);
}

TEST(Stream, TasksGetThePoolOfTheProcess) {
  ThreadPool* pool = nullptr;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext& context) { pool = context.pool; }));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(pool, &ThreadPool::instance());
}

TEST(Stream, SynchronizeTimesOutWhileATaskIsBlockedAndSucceedsAfter) {
  Gate gate;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  RG_EXPECT_OK(stream->submit([](ExecutionContext&) {}));
  const Status late = stream->synchronize(milliseconds(1));
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_EQ(late.message(), "2 tasks of the stream were not done after 1 ms");
  EXPECT_EQ(stream->synchronize(milliseconds(0)).code(), Code::kTimeout);
  EXPECT_EQ(stream->synchronize(milliseconds(-5)).code(), Code::kTimeout);
  EXPECT_EQ(stream->synchronize(milliseconds::min()).code(), Code::kTimeout);
  gate.open();
  RG_EXPECT_OK(stream->synchronize(std::chrono::seconds(30)));
  RG_EXPECT_OK(stream->synchronize(milliseconds(0)));
}

TEST(Stream, TimeoutsLongerThanTheClockReachesAreForEver) {
  Gate started, gate;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  std::thread opener([&] {
    started.wait();
    gate.open();
  });
  started.open();
  RG_EXPECT_OK(stream->synchronize(milliseconds::max() - milliseconds(1)));
  opener.join();
}

// A stream that is never idle: each task submits the next one.
TEST(Stream, SynchronizeDoesNotWaitForWorkSubmittedAfterTheCall) {
  std::atomic<bool> stop = false;
  std::atomic<bool> ran_out = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto stream = make_stream();
  struct Feed {
    Stream& stream;
    std::atomic<bool>& stop;
    std::atomic<bool>& ran_out;
    std::chrono::steady_clock::time_point deadline;
    void operator()(ExecutionContext&) const {
      if (std::chrono::steady_clock::now() > deadline) ran_out = true;
      if (stop || ran_out) return;
      RG_EXPECT_OK(stream.submit(*this));
    }
  };
  RG_EXPECT_OK(stream->submit(Feed{*stream, stop, ran_out, deadline}));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_FALSE(ran_out);
  stop = true;
  while (!stream->idle()) RG_EXPECT_OK(stream->synchronize());
}

TEST(Stream, AFullQueueHoldsItsCallerBackAndLosesNothing) {
  constexpr size_t kTasks = 3 * TaskQueue::kCapacity;
  Gate gate;
  std::atomic<size_t> submitted = 0;
  std::vector<size_t> order;
  size_t most_pending = 0;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { gate.wait(); }));
  std::thread producer([&] {
    for (size_t i = 0; i < kTasks; ++i) {
      RG_EXPECT_OK(stream->submit([&, i](ExecutionContext&) {
        most_pending = std::max(most_pending, submitted - order.size());
        order.push_back(i);
      }));
      ++submitted;
    }
  });
  // The blocked task has a slot as well.
  while (submitted < TaskQueue::kCapacity - 1) std::this_thread::yield();
  gate.open();
  producer.join();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_LE(most_pending, TaskQueue::kCapacity);
  ASSERT_EQ(order.size(), kTasks);
  for (size_t i = 0; i < kTasks; ++i) EXPECT_EQ(order[i], i);
}

TEST(Stream, ATaskThatFindsItsOwnStreamFullIsRefused) {
  size_t accepted = 0;
  size_t ran = 0;
  Status refusal;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    for (;;) {
      refusal = stream->submit([&](ExecutionContext&) { ++ran; });
      if (!refusal.is_ok()) return;
      ++accepted;
    }
  }));
  while (!stream->idle()) RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(refusal.code(), Code::kInvalidArgument);
  EXPECT_EQ(accepted, TaskQueue::kCapacity - 1);
  EXPECT_EQ(ran, accepted);
}

TEST(Stream, ATaskThatSynchronizesItsOwnStreamIsRefused) {
  Status refusal;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { refusal = stream->synchronize(); }));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(refusal.code(), Code::kInvalidArgument);
}

TEST(Stream, AnEmptyTaskIsRefused) {
  const auto stream = make_stream();
  EXPECT_EQ(stream->submit(Task()).code(), Code::kNullArgument);
  EXPECT_TRUE(stream->idle());
}

TEST(Stream, CopiesAndFillsInOrder) {
  const int source[4] = {1, 2, 3, 4};
  unsigned char filled[3] = {9, 9, 9};
  int copied[4] = {};
  int copied_again[4] = {};
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->copy(copied, source, sizeof source));
  RG_EXPECT_OK(stream->copy(copied_again, copied, sizeof copied));
  RG_EXPECT_OK(stream->fill(filled, 0x1ab, 2));
  RG_EXPECT_OK(stream->synchronize());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(copied_again[i], source[i]);
  EXPECT_EQ(filled[0], 0xab);
  EXPECT_EQ(filled[1], 0xab);
  EXPECT_EQ(filled[2], 9);
}

TEST(Stream, CopiesAndFillsOfNothingTakeNull) {
  int value = 0;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->copy(nullptr, nullptr, 0));
  RG_EXPECT_OK(stream->fill(nullptr, 1, 0));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(stream->copy(nullptr, &value, 1).message(), "the destination is null");
  EXPECT_EQ(stream->copy(&value, nullptr, 1).message(), "the source is null");
  EXPECT_EQ(stream->copy(&value, nullptr, 1).code(), Code::kNullArgument);
  EXPECT_EQ(stream->fill(nullptr, 1, 1).code(), Code::kNullArgument);
}

TEST(Stream, SubmittingRecordingAndWaitingAllocateNothing) {
  std::vector<int> numbers(100);
  const auto stream = make_stream();
  const auto other = make_stream();
  const auto event = make_event();
  size_t ran = 0;
  for (const auto& fresh : {stream, other}) {
    RG_EXPECT_OK(fresh->submit([](ExecutionContext&) {}));
    RG_EXPECT_OK(fresh->synchronize());
  }
  const testing::AllocationCounter counter;
  bool ok = true;
  // More than the queue holds, so that a wait for room is among what is counted.
  for (size_t i = 0; i < 2 * TaskQueue::kCapacity; ++i) {
    ok &= (i % 2 == 0 ? stream->submit([&](ExecutionContext&) { ++ran; })
                      : stream->submit_brief([&](ExecutionContext&) { ++ran; }))
              .is_ok();
    ok &= stream->record(event).is_ok();
    ok &= other->wait(event).is_ok();
    ok &= other->fill(numbers.data(), 1, sizeof(int)).is_ok();
    ok &= other->copy(numbers.data() + 1, numbers.data(), sizeof(int)).is_ok();
  }
  ok &= stream->synchronize().is_ok();
  ok &= other->synchronize().is_ok();
  const size_t allocations = counter.count();
  EXPECT_EQ(allocations, 0u);
  EXPECT_TRUE(ok);
  EXPECT_EQ(ran, 2 * TaskQueue::kCapacity);
}

TEST(Stream, ABriefTaskRunsOnTheCallerWhereNothingIsPending) {
  std::thread::id ran_on;
  bool held = true;
  const auto stream = make_stream();
  const std::shared_ptr<bool> releases(&held, [](bool* flag) { *flag = false; });
  RG_EXPECT_OK(stream->submit_brief([&ran_on, kept = releases](ExecutionContext& context) {
    EXPECT_EQ(context.pool, &ThreadPool::instance());
    ran_on = std::this_thread::get_id();
  }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(releases.use_count(), 1);
  EXPECT_TRUE(stream->idle());
  RG_EXPECT_OK(stream->synchronize(milliseconds(0)));
  EXPECT_EQ(stream->submit_brief(Task()).code(), Code::kNullArgument);
}

TEST(Stream, ABriefTaskWaitsForWhatIsPending) {
  Gate gate;
  std::thread::id ran_on;
  bool opened = false, opened_before = false;
  const auto stream = make_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { opened = gate.wait(); }));
  RG_EXPECT_OK(stream->submit_brief([&](ExecutionContext&) {
    ran_on = std::this_thread::get_id();
    opened_before = opened;
  }));
  EXPECT_FALSE(stream->idle());
  gate.open();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_TRUE(opened_before);
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(Stream, WhatIsSubmittedWhileABriefTaskRunsWaitsForIt) {
  Gate started, submitted;
  std::vector<int> order;
  const auto stream = make_stream();
  std::thread other([&] {
    started.wait();
    RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { order.push_back(2); }));
    RG_EXPECT_OK(stream->submit_brief([&](ExecutionContext&) { order.push_back(3); }));
    EXPECT_EQ(stream->synchronize(milliseconds(5)).code(), Code::kTimeout);
    submitted.open();
    RG_EXPECT_OK(stream->synchronize());
  });
  RG_EXPECT_OK(stream->submit_brief([&](ExecutionContext&) {
    started.open();
    EXPECT_EQ(stream->synchronize().code(), Code::kInvalidArgument);  // it would wait for itself
    submitted.wait();
    order.push_back(1);
  }));
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Whoever runs them, no two tasks of a stream run at once, and what was promised done is done.
TEST(Stream, BriefAndOtherTasksOfManyThreadsRunOneByOne) {
  constexpr int kThreads = 4, kTasks = 500;
  int64_t ran = 0;  // not atomic: the stream orders it
  const auto stream = make_stream();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        const auto count = [&ran](ExecutionContext&) { ++ran; };
        RG_EXPECT_OK((i + t) % 3 == 0 ? stream->submit(count) : stream->submit_brief(count));
        if (i % 7 != 0) continue;
        RG_EXPECT_OK(stream->synchronize());
      }
    });
  for (std::thread& thread : threads) thread.join();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(ran, kThreads * kTasks);
}

TEST(Stream, EightThreadsOnEightStreamsGetTheirOwnResults) {
  constexpr int kThreads = 8, kTasks = 300;
  std::vector<int64_t> sums(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&sum = sums[static_cast<size_t>(t)], t] {
      std::vector<int64_t> parts(16);
      const auto stream = make_stream();
      for (int i = 0; i < kTasks; ++i) {
        RG_EXPECT_OK(stream->submit([&parts, t](ExecutionContext& context) {
          context.pool->parallel_for(16, 3, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) parts[static_cast<size_t>(k)] += k + t;
          });
        }));
      }
      RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
        for (const int64_t part : parts) sum += part;
      }));
      RG_EXPECT_OK(stream->synchronize());
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t)
    EXPECT_EQ(sums[static_cast<size_t>(t)], int64_t{kTasks} * (15 * 16 / 2 + 16 * t));
}

TEST(Stream, EightThreadsMayShareOneStream) {
  constexpr int kThreads = 8, kTasks = 500;
  int ran = 0;  // plain: the stream is what orders the tasks
  const auto stream = make_stream();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
    });
  }
  for (auto& thread : threads) thread.join();
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(ran, kThreads * kTasks);
}

TEST(Stream, KnowsItsDevice) {
  HostDevice another(5);
  EXPECT_EQ(&make_stream()->device(), &cpu());
  EXPECT_EQ(&make_stream(another)->device(), &another);
}

}  // namespace
}  // namespace retrograd::runtime
