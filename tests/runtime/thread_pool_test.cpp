// SPDX-License-Identifier: Apache-2.0
// Parallel loops: everything once, the same ranges whatever the number of threads, nested and concurrent
// loops.
#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "allocation_counter.h"
#include "gate.h"

namespace retrograd::runtime::thread_pool_test {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 7};
using Ranges = std::multiset<std::pair<int64_t, int64_t>>;

Ranges ranges_of(ThreadPool& pool, int64_t items, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  pool.parallel_for(items, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace(begin, end);
  });
  return ranges;
}

Ranges expected_ranges(int64_t items, int64_t grain) {
  Ranges ranges;
  for (int64_t begin = 0; begin < items; begin += grain)
    ranges.emplace(begin, std::min(begin + grain, items));
  return ranges;
}

TEST(ThreadPool, RangesAreTheSameForEveryNumberOfThreads) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t items : {1, 2, 3, 5, 16, 17, 100, 1000}) {
      for (const int64_t grain : {1, 2, 3, 7, 16, 999, 1000, 1001}) {
        EXPECT_EQ(ranges_of(pool, items, grain), expected_ranges(items, grain))
            << items << " items, grain " << grain << ", " << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, EveryItemIsVisitedOnce) {
  for (const int threads : kThreadCounts) {
    ThreadPool pool(threads);
    for (const int64_t items : {1, 7, 64, 1001, 20000}) {
      for (const int64_t grain : {1, 3, 64}) {
        // Plain ints: disjoint ranges need no atomics, and the thread sanitizer checks that they are.
        std::vector<int> visits(static_cast<size_t>(items));
        pool.parallel_for(items, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(static_cast<size_t>(items), 1))
            << items << " items, grain " << grain << ", " << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, NothingToDoCallsNothing) {
  ThreadPool pool(2);
  EXPECT_TRUE(ranges_of(pool, 0, 1).empty());
  EXPECT_TRUE(ranges_of(pool, -3, 1).empty());
  EXPECT_TRUE(ranges_of(pool, std::numeric_limits<int64_t>::min(), 1).empty());
}

TEST(ThreadPool, AGrainBelowOneIsOne) {
  ThreadPool pool(2);
  EXPECT_EQ(ranges_of(pool, 3, 0), expected_ranges(3, 1));
  EXPECT_EQ(ranges_of(pool, 3, -9), expected_ranges(3, 1));
}

TEST(ThreadPool, EnormousLoopsDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ThreadPool pool(2);
  EXPECT_EQ(ranges_of(pool, kMost, kMost), (Ranges{{0, kMost}}));
  EXPECT_EQ(ranges_of(pool, kMost, kMost - 1), (Ranges{{0, kMost - 1}, {kMost - 1, kMost}}));
  EXPECT_EQ(ranges_of(pool, kMost, kMost / 2 + 1), (Ranges{{0, kMost / 2 + 1}, {kMost / 2 + 1, kMost}}));
}

TEST(ThreadPool, TwoThreadsWorkAtTheSameTimeInEveryLoop) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    Gate started[2];
    bool met[2] = {};
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t) {
      started[begin].open();
      met[begin] = started[1 - begin].wait();
    });
    ASSERT_TRUE(met[0] && met[1]) << "loop " << round;
  }
}

TEST(ThreadPool, WorkersThatSleepAreWoken) {
  ThreadPool pool(2);
  for (const auto pause : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
    std::this_thread::sleep_for(pause);
    Gate started[2];
    bool met[2] = {};
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t) {
      started[begin].open();
      met[begin] = started[1 - begin].wait();
    });
    ASSERT_TRUE(met[0] && met[1]) << "after " << pause.count() << " ms";
  }
}

TEST(ThreadPool, ACallerWaitsForWorkersThatTakeLong) {
  ThreadPool pool(2);
  bool done[2] = {};
  Gate both_are_in;
  pool.parallel_for(2, 1, [&](int64_t begin, int64_t) {
    if (begin == 0) {
      EXPECT_TRUE(both_are_in.wait());
    } else {
      both_are_in.open();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than it looks before it sleeps
    }
    done[begin] = true;
  });
  EXPECT_TRUE(done[0] && done[1]);
}

// The workers stay with the parent: a caller does not wait for them.
TEST(ThreadPoolDeathTest, AChildOfForkRunsLoopsAlone) {
  ThreadPool pool(3);
  EXPECT_EQ(ranges_of(pool, 100, 7), expected_ranges(100, 7));
  EXPECT_EXIT(std::_Exit(ranges_of(pool, 100, 7) == expected_ranges(100, 7) ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, OneRangeRunsOnTheCaller) {
  std::thread::id ran_on;
  ThreadPool pool(3);
  pool.parallel_for(10, 10, [&](int64_t, int64_t) { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(ThreadPool, ALoopInsideALoopRunsInItsOwnThread) {
  ThreadPool pool(3);
  std::vector<int> visits(600);
  std::atomic<int> strangers = 0;
  pool.parallel_for(20, 1, [&](int64_t outer, int64_t) {
    const auto self = std::this_thread::get_id();
    pool.parallel_for(30, 4, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != self) ++strangers;
      for (int64_t inner = begin; inner < end; ++inner) ++visits[static_cast<size_t>(outer * 30 + inner)];
    });
  });
  EXPECT_EQ(visits, std::vector<int>(600, 1));
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, ASecondCallerDoesNotWaitForTheFirst) {
  Gate first_is_in, second_is_done;
  std::atomic<int> met = 0;
  Ranges second_ranges;
  ThreadPool pool(2);
  std::thread first([&] {
    pool.parallel_for(2, 1, [&](int64_t, int64_t) {
      first_is_in.open();
      if (second_is_done.wait()) ++met;
    });
  });
  EXPECT_TRUE(first_is_in.wait());
  second_ranges = ranges_of(pool, 100, 7);
  second_is_done.open();
  first.join();
  EXPECT_EQ(met, 2);
  EXPECT_EQ(second_ranges, expected_ranges(100, 7));
}

TEST(ThreadPool, ManyCallersAtOnceGetTheirOwnLoops) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::vector<int> visits(50);
        pool.parallel_for(50, 4, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(50, 1));
      }
    });
  }
  for (auto& caller : callers) caller.join();
}

TEST(ThreadPool, WhatOneLoopWroteTheNextOneReads) {
  ThreadPool pool(3);
  std::vector<int64_t> values(1000, 0);
  for (int round = 0; round < 50; ++round) {
    // Other ranges each round, so that items change threads.
    pool.parallel_for(1000, 10 + round, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i;
    });
  }
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 50 * i);
}

TEST(ThreadPool, TakesConstAndTemporaryBodies) {
  std::atomic<int64_t> sum = 0;
  ThreadPool pool(2);
  const auto body = [&](int64_t begin, int64_t end) { sum += end - begin; };
  pool.parallel_for(10, 3, body);
  pool.parallel_for(10, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 20);
}

TEST(ThreadPool, LoopsAllocateNothing) {
  std::atomic<int64_t> sum = 0;
  ThreadPool pool(3);
  // A thread that starts may allocate: wait until all three are there.
  std::atomic<int> there = 0;
  pool.parallel_for(3, 1, [&](int64_t, int64_t) {
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  const testing::AllocationCounter counter;
  for (int round = 0; round < 100; ++round)
    pool.parallel_for(100, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
  const size_t allocations = counter.count();
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(sum, 100 * 100);
}

// ctest runs this one a second time with RETROGRAD_NUM_THREADS=3.
TEST(ThreadPool, ThePoolOfTheProcessHasTheThreadsThatWereAskedFor) {
  const char* const asked = std::getenv("RETROGRAD_NUM_THREADS");
  const int expected =
      asked != nullptr ? std::atoi(asked) : static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(ThreadPool::instance().threads(), expected);
  EXPECT_EQ(&ThreadPool::instance(), &ThreadPool::instance());
}

}  // namespace
}  // namespace retrograd::runtime::thread_pool_test
