// SPDX-License-Identifier: Apache-2.0
// The null stream of the CPU: everything is done when the call returns.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "allocation_counter.h"
#include "gate.h"
#include "host_fixture.h"
#include "runtime/host/host_device.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {
namespace {

TEST(InlineStream, RunsTheTaskOnTheCallingThreadBeforeItReturns) {
  std::thread::id ran_on;
  ThreadPool* pool = nullptr;
  const auto stream = cpu().null_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext& context) {
    ran_on = std::this_thread::get_id();
    pool = context.pool;
  }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(pool, &ThreadPool::instance());
  EXPECT_TRUE(stream->idle());
  RG_EXPECT_OK(stream->synchronize());
  RG_EXPECT_OK(stream->synchronize(std::chrono::milliseconds(0)));
  stream->abandon();
  EXPECT_EQ(&stream->device(), &cpu());
  EXPECT_EQ(stream->submit(Task()).code(), Code::kNullArgument);
}

TEST(InlineStream, ATaskMaySubmit) {
  int ran = 0;
  const auto stream = cpu().null_stream();
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
    EXPECT_EQ(ran, 1);
  }));
  EXPECT_EQ(ran, 1);
}

TEST(InlineStream, ARecordIsCompleteAtOnceAndHasATime) {
  const auto start = make_event();
  const auto end = make_event();
  const auto stream = cpu().null_stream();
  RG_EXPECT_OK(stream->record(start));
  EXPECT_EQ(start->state(), EventState::kComplete);
  RG_EXPECT_OK(stream->record(end));
  EXPECT_GE(end->elapsed_since(*start).value(), 0.0F);
  HostDevice another(1);
  EXPECT_EQ(another.null_stream()->record(start).code(), Code::kWrongDevice);
}

TEST(InlineStream, WaitBlocksTheCallerUntilTheEventIsDone) {
  Gate gate;
  int value = 0;
  const auto event = make_event();
  const auto worker = make_stream();
  RG_EXPECT_OK(worker->submit([&](ExecutionContext&) {
    gate.wait();
    value = 5;
  }));
  RG_EXPECT_OK(worker->record(event));
  gate.open();
  RG_EXPECT_OK(cpu().null_stream()->wait(event));
  EXPECT_EQ(value, 5);
}

TEST(InlineStream, ThreadsRunTheirTasksAtTheSameTime) {
  Gate here_started, there_started;
  bool here_met = false, there_met = false;
  const auto stream = cpu().null_stream();
  std::thread there([&] {
    RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
      there_started.open();
      there_met = here_started.wait();
    }));
  });
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) {
    here_started.open();
    here_met = there_started.wait();
  }));
  there.join();
  EXPECT_TRUE(here_met);
  EXPECT_TRUE(there_met);
}

TEST(InlineStream, CopiesAndFills) {
  const int source[2] = {1, 2};
  int destination[2] = {};
  const auto stream = cpu().null_stream();
  RG_EXPECT_OK(stream->copy(destination, source, sizeof source));
  EXPECT_EQ(destination[1], 2);
  RG_EXPECT_OK(stream->fill(destination, 0, sizeof(int)));
  EXPECT_EQ(destination[0], 0);
  EXPECT_EQ(destination[1], 2);
  RG_EXPECT_OK(stream->copy(nullptr, nullptr, 0));
  RG_EXPECT_OK(stream->fill(nullptr, 0, 0));
  EXPECT_EQ(stream->copy(destination, nullptr, 1).code(), Code::kNullArgument);
  EXPECT_EQ(stream->fill(nullptr, 0, 1).code(), Code::kNullArgument);
}

TEST(InlineStream, AllocatesNothing) {
  int ran = 0;
  const auto event = make_event();
  const auto stream = cpu().null_stream();
  const testing::AllocationCounter counter;
  const bool ok = stream->submit([&](ExecutionContext&) { ++ran; }).is_ok() &&
                  stream->record(event).is_ok() && stream->wait(event).is_ok() &&
                  stream->synchronize().is_ok();
  const size_t allocations = counter.count();
  EXPECT_EQ(allocations, 0u);
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace retrograd::runtime
