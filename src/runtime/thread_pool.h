// SPDX-License-Identifier: Apache-2.0
// ThreadPool: parallel loops for kernels, on threads of our own or of a host runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace retrograd::runtime {

class ThreadPool {
 public:
  enum class Loops : unsigned char { kOwnThreads, kForeignThreads };
  // 0: one thread a core. The caller of a loop is one of the threads. Fewer when the system grants fewer.
  // kForeignThreads: loops run on the threads of foreign_threads.h, where such have been set.
  explicit ThreadPool(int threads, Loops loops = Loops::kOwnThreads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int threads() const { return threads_; }

  // Calls body(begin, end) over disjoint ranges that cover [0, items), each of `grain` items but the last.
  // The ranges depend on `items` and `grain` alone, never on the number of threads. When another thread
  // is in a loop of this pool, this is a loop inside a loop, or there is one range only, the caller runs all
  // of it. A body must not throw. Never allocates.
  template <class Body>
  void parallel_for(int64_t items, int64_t grain, Body&& body) {
    using Function = std::remove_reference_t<Body>;
    run(
        items, grain,
        [](void* context, int64_t begin, int64_t end) { (*static_cast<Function*>(context))(begin, end); },
        const_cast<std::remove_const_t<Function>*>(&body));
  }

  // The process's pool: RETROGRAD_NUM_THREADS threads, made at first use and never destroyed, and the only
  // one whose loops run on foreign threads. A forked child has one of its own.
  static ThreadPool& instance();

 private:
  using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
  struct Loop;
  struct Share;
  class Team;
  class ForeignLoop;
  static void run_range(const Loop& loop, int64_t range);
  void run(int64_t items, int64_t grain, RangeFunction function, void* context);

  int threads_ = 1;
  Loops loops_;
  std::unique_ptr<Team> team_;  // null: the caller is alone
};

}  // namespace retrograd::runtime
