// SPDX-License-Identifier: Apache-2.0
// Task: moved, run and destroyed exactly as often as it should be.
#include "runtime/task.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "allocation_counter.h"

namespace retrograd::runtime {
namespace {

TEST(Task, RunsWhatItHolds) {
  ExecutionContext context;
  const ExecutionContext* seen = nullptr;
  Task task = [&](ExecutionContext& given) { seen = &given; };
  EXPECT_TRUE(task);
  task(context);
  EXPECT_EQ(seen, &context);
}

TEST(Task, DefaultConstructedIsEmpty) { EXPECT_FALSE(Task()); }

TEST(Task, MovingLeavesTheSourceEmptyAndHoldsTheCaptureOnce) {
  auto captured = std::make_shared<int>(0);
  Task first = [captured](ExecutionContext&) { ++*captured; };
  EXPECT_EQ(captured.use_count(), 2);
  Task second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): emptiness after a move is the rule tested
  EXPECT_TRUE(second);
  EXPECT_EQ(captured.use_count(), 2);
  ExecutionContext context;
  second(context);
  EXPECT_EQ(*captured, 1);
}

TEST(Task, AssignmentDestroysWhatWasHeldBefore) {
  auto old_capture = std::make_shared<int>(0);
  auto new_capture = std::make_shared<int>(0);
  Task task = [old_capture](ExecutionContext&) {};
  task = Task([new_capture](ExecutionContext&) {});
  EXPECT_EQ(old_capture.use_count(), 1);
  EXPECT_EQ(new_capture.use_count(), 2);
}

TEST(Task, AssigningItselfChangesNothing) {
  auto captured = std::make_shared<int>(0);
  Task task = [captured](ExecutionContext&) {};
  Task& same = task;
  task = std::move(same);
  EXPECT_TRUE(task);
  EXPECT_EQ(captured.use_count(), 2);
}

TEST(Task, AssigningAnEmptyTaskEmptiesIt) {
  auto captured = std::make_shared<int>(0);
  Task task = [captured](ExecutionContext&) {};
  task = Task();
  EXPECT_FALSE(task);
  EXPECT_EQ(captured.use_count(), 1);
}

TEST(Task, ResetAndDestructionReleaseTheCaptureOnce) {
  auto captured = std::make_shared<int>(0);
  {
    Task task = [captured](ExecutionContext&) {};
    task.reset();
    EXPECT_FALSE(task);
    EXPECT_EQ(captured.use_count(), 1);
    task.reset();
    EXPECT_EQ(captured.use_count(), 1);
    task = [captured](ExecutionContext&) {};
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
}

TEST(Task, HoldsAFullSizedMoveOnlyCaptureWithoutAllocating) {
  struct Full {
    std::unique_ptr<int> value;
    std::array<std::byte, Task::kCapacity - sizeof(std::unique_ptr<int>)> rest;
    void operator()(ExecutionContext&) { ++*value; }
  };
  static_assert(sizeof(Full) == Task::kCapacity);
  Full full{std::make_unique<int>(0), {}};
  const int* const value = full.value.get();
  ExecutionContext context;
  const testing::AllocationCounter counter;
  Task first = std::move(full);
  Task second = std::move(first);
  second(context);
  EXPECT_EQ(counter.count(), 0u);
  EXPECT_EQ(*value, 1);
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the analyzer loses what a Task holds in place

}  // namespace
}  // namespace retrograd::runtime
