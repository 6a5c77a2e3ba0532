// SPDX-License-Identifier: Apache-2.0
// Parallel loops on pthreadpool.
#include "runtime/thread_pool.h"

#include <fmt/format.h>
#include <pthreadpool.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "base/log.h"
#include "base/settings.h"

#if defined(__SANITIZE_THREAD__)
#define RG_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RG_THREAD_SANITIZER 1
#endif
#endif

#ifdef RG_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace retrograd::runtime {
namespace {

// The packaged pthreadpool is not instrumented: ThreadSanitizer does not see that it hands a loop over to its
// workers and their results back. These two say so; without it they are nothing.
void hand_over([[maybe_unused]] void* loop) {
#ifdef RG_THREAD_SANITIZER
  __tsan_release(loop);
#endif
}
void take_over([[maybe_unused]] void* loop) {
#ifdef RG_THREAD_SANITIZER
  __tsan_acquire(loop);
#endif
}

constexpr int kMostThreads = 1024;

// Workers that find nothing to do sleep instead of spinning. On a busy 2-core machine: 24 us a loop either
// way with 2 threads, 0.1 ms against 8 ms with 4, where spinning keeps the core from the thread that has the
// work. Streams have threads of their own, so there are often more threads than cores.
constexpr uint32_t kLoopFlags = PTHREADPOOL_FLAG_YIELD_WORKERS;

int wanted_threads(int threads) {
  if (threads <= 0)
    threads = static_cast<int>(std::min(std::thread::hardware_concurrency(), unsigned{kMostThreads}));
  return std::clamp(threads, 1, kMostThreads);
}

// pthreadpool_create waits for ever for a worker the system refused to start, so it is tried first how many
// start at once. The caller counts as one.
int startable_threads(int wanted) {
  std::vector<std::thread> probes;
  probes.reserve(static_cast<size_t>(wanted));
  std::latch end(1);
  try {
    while (static_cast<int>(probes.size()) + 1 < wanted) probes.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error& error) {
    log::warn_once(
        fmt::format("only {} of {} threads for parallel loops: {}", probes.size() + 1, wanted, error.what()));
  }
  end.count_down();
  for (std::thread& probe : probes) probe.join();
  return static_cast<int>(probes.size()) + 1;
}

}  // namespace

// The loop that runs, at most one at a time. It lives as long as the pool, so that its address can stand for
// the hand-over.
struct ThreadPool::Loop {
  std::atomic_flag busy;
  RangeFunction function = nullptr;
  void* context = nullptr;
  int64_t items = 0;
  int64_t grain = 0;

  static void run_range(RangeFunction function, void* context, int64_t items, int64_t grain, int64_t range) {
    const int64_t begin = range * grain;
    function(context, begin, items - begin > grain ? begin + grain : items);
  }

  static void on_worker(void* self, size_t range) {
    take_over(self);
    const auto& loop = *static_cast<const Loop*>(self);
    run_range(loop.function, loop.context, loop.items, loop.grain, static_cast<int64_t>(range));
    hand_over(self);
  }
};

ThreadPool::ThreadPool(int threads) : loop_(std::make_unique<Loop>()) {
  const int startable = startable_threads(wanted_threads(threads));
  if (startable > 1) pool_ = pthreadpool_create(static_cast<size_t>(startable));
  if (pool_ != nullptr) threads_ = static_cast<int>(pthreadpool_get_threads_count(pool_));
}

ThreadPool::~ThreadPool() { pthreadpool_destroy(pool_); }

ThreadPool& ThreadPool::instance() {
  static auto* pool = new ThreadPool(settings().num_threads);
  return *pool;
}

void ThreadPool::run(int64_t items, int64_t grain, RangeFunction function, void* context) {
  if (items <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = ceil_div(items, grain);
  // Also taken when this is a loop inside a loop's body: waiting for the pool would be waiting for ourselves.
  if (ranges == 1 || pool_ == nullptr || loop_->busy.test_and_set(std::memory_order_acquire)) {
    for (int64_t range = 0; range < ranges; ++range) Loop::run_range(function, context, items, grain, range);
    return;
  }
  loop_->function = function;
  loop_->context = context;
  loop_->items = items;
  loop_->grain = grain;
  hand_over(loop_.get());
  pthreadpool_parallelize_1d(pool_, Loop::on_worker, loop_.get(), static_cast<size_t>(ranges), kLoopFlags);
  take_over(loop_.get());
  loop_->busy.clear(std::memory_order_release);
}

}  // namespace retrograd::runtime
