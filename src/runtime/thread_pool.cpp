// SPDX-License-Identifier: Apache-2.0
// Parallel loops on threads of our own, or on those of a host runtime that has set its loop.
//
// The overhead of a loop is the hand-over. Waking a worker takes 20 to 50 us on a virtual machine, longer
// than many loops run. So a worker spins for a while before it sleeps, and a caller that has done all the
// work itself does not wait for workers that have not started.
#include "runtime/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "base/log.h"
#include "base/per_process.h"
#include "base/settings.h"
#include "base/thread_slot.h"
#include "runtime/foreign_threads.h"

namespace retrograd::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostThreads = 1024;

// How long a worker with nothing to do looks for the next loop: as long as waking it would take.
constexpr std::chrono::microseconds kIdle{50};
// How long a caller with nothing left to do looks whether the workers are done before it sleeps.
constexpr std::chrono::microseconds kFinishing{1000};

int wanted_threads(int threads) {
  if (threads <= 0)
    threads = static_cast<int>(std::min(std::thread::hardware_concurrency(), unsigned{kMostThreads}));
  return std::clamp(threads, 1, kMostThreads);
}

// A moment in which the core's other hardware thread has all its units.
void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` returns at once on cores without such a thread: no pause
#endif
}

// Looks until done() or the end of the time: whether it is done. Threads that wait for this core are let in
// every microsecond, so that looking never keeps the work itself waiting.
template <class Done>
bool look(std::chrono::microseconds time, const Done& done) {
  constexpr int kLooks = 40;
  if (done()) return true;
  for (const auto end = Clock::now() + time; Clock::now() < end; sched_yield())
    for (int i = 0; i < kLooks; ++i) {
      relax();
      if (done()) return true;
    }
  return false;
}

// Not null while the thread runs a piece of a loop on a host's threads.
const ThreadSlot<void> inside_a_piece;

}  // namespace

struct ThreadPool::Loop {
  RangeFunction function = nullptr;
  void* context = nullptr;
  int64_t items = 0, grain = 1;
};

void ThreadPool::run_range(const Loop& loop, int64_t range) {
  const int64_t begin = range * loop.grain;
  loop.function(loop.context, begin, loop.items - begin > loop.grain ? begin + loop.grain : loop.items);
}

// The ranges that a thread begins with, the same in every loop of that size: its caches hold what it left
// there. Then it takes what the others have not begun.
struct alignas(64) ThreadPool::Share {
  static void cut(Share* shares, int64_t count, int64_t ranges) {
    const int64_t each = ranges / count, more = ranges % count;
    int64_t begin = 0;
    for (int64_t i = 0; i < count; ++i) {
      shares[i].next.store(begin, std::memory_order_relaxed);
      begin += each + (i < more ? 1 : 0);
      shares[i].end = begin;
    }
  }
  static void take_ranges(const Loop& loop, Share* shares, size_t count, size_t first) {
    for (size_t i = 0; i < count; ++i) {
      Share& share = shares[(first + i) % count];
      for (int64_t range = share.next.fetch_add(1, std::memory_order_relaxed); range < share.end;
           range = share.next.fetch_add(1, std::memory_order_relaxed))
        run_range(loop, range);
    }
  }

  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

// What the caller of a loop and the workers share; one loop at a time.
class ThreadPool::Team {
 public:
  explicit Team(int threads)
      : shares_(static_cast<size_t>(threads)),
        looks_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency()) {
    workers_.reserve(shares_.size() - 1);
    try {
      for (size_t i = 1; i < shares_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error& error) {
      warn_of_fewer(threads, error);
    } catch (...) {
      end_workers();  // no destructor runs for an object that was not made
      throw;
    }
  }
  ~Team() { end_workers(); }
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // False, and nothing done, while another loop runs.
  bool run(const Loop& loop, int64_t ranges) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    loop_ = loop;
    open(ranges);
    take_ranges(0);
    close();
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  void end_workers() {
    ending_.store(true);
    loops_.fetch_add(1);
    loops_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  // Loops run on fewer threads as well, so a warning that finds no memory is no failure.
  void warn_of_fewer(int wanted, const std::system_error& error) noexcept {
    try {
      log::warn_once(
          fmt::format("only {} of {} threads for parallel loops: {}", threads(), wanted, error.what()));
    } catch (...) {
    }
  }

  // state_: whether workers may join, how many, and how many are in the loop now.
  static constexpr uint32_t kOpen = 1u << 31, kPlace = 1u << 16, kInside = kPlace - 1;
  static_assert(kMostThreads < kOpen / kPlace);

  void open(int64_t ranges) {
    const int64_t threads = this->threads();
    Share::cut(shares_.data(), threads, ranges);
    const auto places = static_cast<uint32_t>(std::min(ranges, threads) - 1);
    joined_.store(false, std::memory_order_relaxed);
    state_.store(kOpen + places * kPlace, std::memory_order_release);
    loops_.fetch_add(1);
    places == 1 ? loops_.notify_one() : loops_.notify_all();
  }
  // Nobody joins any more; waits for those inside.
  void close() {
    state_.fetch_and(kInside, std::memory_order_acq_rel);
    // If nobody came, a worker may be waiting for the core that this thread has: one with a real-time
    // priority would keep it from there for ever.
    if (!joined_.load(std::memory_order_relaxed)) sched_yield();
    const auto left = [&] { return state_.load(std::memory_order_acquire); };
    if (look(kFinishing, [&] { return left() == 0; })) return;
    for (uint32_t now = left(); now != 0; now = left()) state_.wait(now);
  }

  bool join() {
    uint32_t now = state_.load(std::memory_order_relaxed);
    while ((now & kOpen) != 0 && (now & kInside) < (now & ~kOpen) / kPlace)
      if (state_.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }
  void leave() {
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) state_.notify_one();
  }
  void work(size_t thread) {
    uint32_t seen = 0;
    const auto is_next = [&] { return loops_.load(std::memory_order_acquire) != seen; };
    for (;;) {
      if (!looks_ || !look(kIdle, is_next)) loops_.wait(seen, std::memory_order_acquire);
      if (ending_.load()) return;
      seen = loops_.load();
      if (!join()) continue;
      joined_.store(true, std::memory_order_relaxed);
      take_ranges(thread);
      leave();
    }
  }

  void take_ranges(size_t thread) {
    Share::take_ranges(loop_, shares_.data(), static_cast<size_t>(threads()), thread);
  }

  std::atomic_flag busy_;
  Loop loop_;  // and the shares: written before the state is open, read by those inside
  std::vector<Share> shares_;
  alignas(64) std::atomic<uint32_t> state_{0};
  std::atomic<bool> joined_{false};             // whether any worker did, in this loop
  alignas(64) std::atomic<uint32_t> loops_{0};  // so far; workers wait for the next one
  std::atomic<bool> ending_{false};
  const bool looks_;  // before it sleeps; not where there are more threads than cores
  std::vector<std::thread> workers_;
};

// One loop on the host's threads: as many pieces as it has threads, each of which takes ranges until none is
// left. A host that runs them one after the other, or none at all, gets the same results.
class ThreadPool::ForeignLoop {
 public:
  // False, and nothing done, where the caller should run the loop by itself.
  // A frame of its own: threads that call have 64 KiB of stack, and this takes 16 where a host is.
  [[gnu::noinline]] static bool run(const ForeignThreads& host, const Loop& loop, int64_t ranges,
                                    int own_threads) {
    if (inside_a_piece.get() != nullptr) return false;  // a host need not know loops within loops
    const int threads = host.thread_count != nullptr ? host.thread_count(host.context) : own_threads;
    const auto pieces = std::min<int64_t>({ranges, threads, kMostPieces});
    if (pieces <= 1) return false;
    ForeignLoop all(loop, pieces, ranges);
    host.parallel_for(host.context, pieces, run_piece, &all);
    run_piece(&all, 0);  // what a host that has come to its end, or to an error of its own, has left
    return true;
  }

 private:
  static constexpr int64_t kMostPieces = 256;

  ForeignLoop(const Loop& loop, int64_t pieces, int64_t ranges) : loop_(loop), pieces_(pieces) {
    // No array of Shares: to set up all of them would take longer than many a loop.
    for (int64_t i = 0; i < pieces; ++i) new (shares() + i) Share;
    Share::cut(shares(), pieces, ranges);
  }
  Share* shares() { return reinterpret_cast<Share*>(memory_); }

  static void run_piece(void* context, int64_t piece) {
    auto& all = *static_cast<ForeignLoop*>(context);
    // Without memory for the mark a loop inside goes to the host, which most hosts can take.
    const bool marked = inside_a_piece.set(&all);
    Share::take_ranges(all.loop_, all.shares(), static_cast<size_t>(all.pieces_),
                       static_cast<size_t>(piece) % static_cast<size_t>(all.pieces_));
    if (marked) static_cast<void>(inside_a_piece.set(nullptr));
  }
  const Loop& loop_;
  const int64_t pieces_;
  alignas(Share) std::byte memory_[kMostPieces * sizeof(Share)];
};

ThreadPool::ThreadPool(int threads, Loops loops) : loops_(loops) {
  threads = wanted_threads(threads);
  if (threads == 1) return;
  team_ = std::make_unique<Team>(threads);
  threads_ = team_->threads();
}

ThreadPool::~ThreadPool() = default;

ThreadPool& ThreadPool::instance() {
  static constinit PerProcess<ThreadPool> pool;
  return pool.get(settings().num_threads, Loops::kForeignThreads);
}

void ThreadPool::run(int64_t items, int64_t grain, RangeFunction function, void* context) {
  if (items <= 0) return;
  const Loop loop{function, context, items, std::max<int64_t>(grain, 1)};
  const int64_t ranges = ceil_div(loop.items, loop.grain);
  const ForeignThreads* const host = loops_ == Loops::kForeignThreads ? foreign_threads() : nullptr;
  if (host != nullptr) {
    if (ranges > 1 && ForeignLoop::run(*host, loop, ranges, threads_)) return;
  } else if (ranges > 1 && threads_ > 1 && team_->run(loop, ranges)) {
    return;
  }
  // Also a loop inside a loop's body, which the team does not take: waiting would be waiting for ourselves.
  for (int64_t range = 0; range < ranges; ++range) run_range(loop, range);
}

}  // namespace retrograd::runtime
