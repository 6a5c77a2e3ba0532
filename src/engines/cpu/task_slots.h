// SPDX-License-Identifier: Apache-2.0
// Tasks that need scratch memory: as many slots as threads, each with its own scratch, taking tasks until
// none is left.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {

// Bytes of a part of the workspace that holds `count` elements of T; parts that follow each other stay
// aligned.
template <class T>
size_t part_bytes(int64_t count) {
  constexpr size_t kAlignment = 64;
  return (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
}

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

// The same where tasks only move memory: each slot begins with a range of tasks of its own, the same in every
// call, so that a core finds again in its caches what it left there; then it helps the others.
template <class Body>
void run_tasks_nearby(runtime::ThreadPool& pool, int64_t tasks, int64_t slots, const Body& body) {
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  constexpr int64_t kMostShares = 32;
  std::array<Share, kMostShares> all;
  const int64_t used = slots < tasks ? slots : tasks, shares = used < kMostShares ? used : kMostShares;
  for (int64_t i = 0; i < shares; ++i) {
    Share& share = all[static_cast<size_t>(i)];
    share.next.store(tasks * i / shares, std::memory_order_relaxed);
    share.end = tasks * (i + 1) / shares;
  }
  pool.parallel_for(used, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      for (int64_t i = 0; i < shares; ++i) {
        Share& share = all[static_cast<size_t>((slot + i) % shares)];
        for (int64_t task = share.next.fetch_add(1, std::memory_order_relaxed); task < share.end;
             task = share.next.fetch_add(1, std::memory_order_relaxed))
          body(task, slot);
      }
  });
}

}  // namespace retrograd::engines::cpu
