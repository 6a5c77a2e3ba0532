// SPDX-License-Identifier: Apache-2.0
// Loops on a host runtime's threads: everything once, whatever the host does, and our own pool again
// afterwards.
#include "runtime/foreign_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "allocation_counter.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {
namespace {

// What a host may do with the pieces it is given.
struct Host {
  enum class Manner { kThreads, kSerial, kBackwards, kHalf, kNone };
  Manner manner = Manner::kThreads;
  int threads = 3;
  std::atomic<int> calls{0};
  std::atomic<int64_t> most_pieces{0};
  std::mutex mutex{};
  std::set<std::thread::id> seen{};

  static void parallel_for(void* context, int64_t pieces, ForeignThreads::Piece piece, void* piece_context) {
    auto& host = *static_cast<Host*>(context);
    ++host.calls;
    for (int64_t most = host.most_pieces; most < pieces;)
      if (host.most_pieces.compare_exchange_weak(most, pieces)) break;
    const auto run = [&](int64_t i) {
      {
        std::lock_guard lock(host.mutex);
        host.seen.insert(std::this_thread::get_id());
      }
      piece(piece_context, i);
    };
    if (host.manner == Manner::kThreads) {
      std::vector<std::thread> threads;
      for (int64_t i = 1; i < pieces; ++i) threads.emplace_back(run, i);
      run(0);
      for (std::thread& thread : threads) thread.join();
    }
    if (host.manner == Manner::kSerial)
      for (int64_t i = 0; i < pieces; ++i) run(i);
    if (host.manner == Manner::kBackwards)
      for (int64_t i = pieces; i-- > 0;) run(i);
    if (host.manner == Manner::kHalf)
      for (int64_t i = 0; i < pieces / 2; ++i) run(i);
  }
  static int thread_count(void* context) { return static_cast<Host*>(context)->threads; }
  void set() { set_foreign_threads({parallel_for, thread_count, this}); }
};

class ForeignThreadsTest : public ::testing::Test {
 protected:
  ~ForeignThreadsTest() override { set_foreign_threads({}); }
  ThreadPool& pool_ = ThreadPool::instance();
};

using Ranges = std::multiset<std::pair<int64_t, int64_t>>;
Ranges ranges_of(ThreadPool& pool, int64_t items, int64_t grain) {
  std::mutex mutex{};
  Ranges ranges;
  pool.parallel_for(items, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace(begin, end);
  });
  return ranges;
}

TEST_F(ForeignThreadsTest, EveryRangeOnceWhateverTheHostDoes) {
  for (const int64_t items : {1, 2, 5, 100, 1001})
    for (const int64_t grain : {1, 3, 1000}) {
      set_foreign_threads({});
      const Ranges expected = ranges_of(pool_, items, grain);
      for (const auto manner : {Host::Manner::kThreads, Host::Manner::kSerial, Host::Manner::kBackwards,
                                Host::Manner::kHalf, Host::Manner::kNone})
        for (const int threads : {-1, 0, 1, 2, 7, 5000}) {
          Host host{.manner = manner, .threads = threads};
          if (manner == Host::Manner::kThreads && threads > 7) host.threads = 9;
          host.set();
          EXPECT_EQ(ranges_of(pool_, items, grain), expected)
              << items << " items, grain " << grain << ", manner " << static_cast<int>(manner) << ", "
              << threads << " threads";
        }
    }
}

TEST_F(ForeignThreadsTest, LoopsRunOnTheHostsThreadsAndNoOthers) {
  Host host;
  host.set();
  std::set<std::thread::id> ran;
  std::mutex mutex{};
  pool_.parallel_for(1000, 1, [&](int64_t, int64_t) {
    std::lock_guard lock(mutex);
    ran.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(host.calls, 1);
  EXPECT_EQ(host.most_pieces, 3);
  for (const std::thread::id id : ran) EXPECT_TRUE(host.seen.contains(id));
}

TEST_F(ForeignThreadsTest, ThreadsOfTheHostWorkAtTheSameTime) {
  Host host{.threads = 2};
  host.set();
  std::atomic<int> waiting{0};
  pool_.parallel_for(2, 1, [&](int64_t, int64_t) {
    ++waiting;
    while (waiting < 2) std::this_thread::yield();  // for ever if one thread ran both
  });
  EXPECT_EQ(waiting, 2);
}

TEST_F(ForeignThreadsTest, PiecesFollowTheHostsNumberOfThreads) {
  Host host{.manner = Host::Manner::kSerial};
  host.set();
  const auto pieces = [&](int threads, int64_t items) {
    host.threads = threads;
    host.most_pieces = 0;
    pool_.parallel_for(items, 1, [](int64_t, int64_t) {});
    return host.most_pieces.load();
  };
  EXPECT_EQ(pieces(5, 100), 5);
  EXPECT_EQ(pieces(2, 100), 2);
  EXPECT_EQ(pieces(64, 10), 10);
  EXPECT_EQ(pieces(1, 100), 0) << "a host with one thread is not asked";
  EXPECT_EQ(pieces(100000, 100000), 256);
}

TEST_F(ForeignThreadsTest, AHostThatDoesNotCountIsThoughtAsLargeAsOurPool) {
  Host host{.manner = Host::Manner::kSerial};
  set_foreign_threads({Host::parallel_for, nullptr, &host});
  pool_.parallel_for(10000, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(host.most_pieces, pool_.threads() > 1 ? pool_.threads() : 0);
}

TEST_F(ForeignThreadsTest, ALoopInsideALoopRunsInItsOwnThread) {
  Host host;
  host.set();
  std::atomic<int> elsewhere{0}, items{0};
  pool_.parallel_for(8, 1, [&](int64_t, int64_t) {
    const auto here = std::this_thread::get_id();
    pool_.parallel_for(8, 1, [&](int64_t, int64_t) {
      ++items;
      if (std::this_thread::get_id() != here) ++elsewhere;
    });
  });
  EXPECT_EQ(items, 64);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(host.calls, 1);
  pool_.parallel_for(8, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(host.calls, 2) << "the mark of a piece is gone behind it";
}

TEST_F(ForeignThreadsTest, ManyThreadsCallAtOnceWhileTheHostChanges) {
  Host first, second{.manner = Host::Manner::kSerial, .threads = 4};
  std::atomic<bool> stop{false};
  std::thread switching([&] {
    for (int i = 0; !stop; ++i) {
      if (i % 3 == 0) first.set();
      if (i % 3 == 1) second.set();
      if (i % 3 == 2) set_foreign_threads({});
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        pool_.parallel_for(100, 7, [&](int64_t begin, int64_t end) {
          for (int64_t item = begin; item < end; ++item) sum += item;
        });
    });
  for (std::thread& caller : callers) caller.join();
  stop = true;
  switching.join();
  EXPECT_EQ(sum, 4 * 50 * 4950);
}

TEST_F(ForeignThreadsTest, OtherPoolsKeepTheirThreads) {
  Host host;
  host.set();
  ThreadPool own(2);
  own.parallel_for(100, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(host.calls, 0);
}

TEST_F(ForeignThreadsTest, NullGivesLoopsBack) {
  Host host;
  host.set();
  set_foreign_threads({});
  pool_.parallel_for(100, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(host.calls, 0);
  EXPECT_EQ(foreign_threads(), nullptr);
}

// The host's threads stay with the parent.
using ForeignThreadsDeathTest = ForeignThreadsTest;
TEST_F(ForeignThreadsDeathTest, AChildOfForkHasNoForeignThreads) {
  Host host;
  host.set();
  EXPECT_NE(foreign_threads(), nullptr);
  EXPECT_EXIT(std::_Exit(foreign_threads() == nullptr ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST_F(ForeignThreadsTest, LoopsAllocateNothing) {
  Host host{.manner = Host::Manner::kSerial};
  host.set();
  const auto loop = [&] { pool_.parallel_for(100, 1, [](int64_t, int64_t) {}); };
  loop();
  const testing::AllocationCounter counter;
  loop();
  EXPECT_EQ(counter.count(), 0u);
}

}  // namespace
}  // namespace retrograd::runtime
