// SPDX-License-Identifier: Apache-2.0
// Tasks that need scratch memory: as many slots as threads, each with its own scratch, taking tasks until
// none is left.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {

// Calls body(task, slot) for every task. What a task computes must depend on its number alone: which slot
// takes it, and when, is chance.
template <class Body>
void run_tasks(runtime::ThreadPool& pool, int64_t tasks, int64_t slots, const Body& body) {
  std::atomic<int64_t> next{0};
  pool.parallel_for(slots < tasks ? slots : tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      for (int64_t task = next.fetch_add(1, std::memory_order_relaxed); task < tasks;
           task = next.fetch_add(1, std::memory_order_relaxed))
        body(task, slot);
  });
}

}  // namespace retrograd::engines::cpu
