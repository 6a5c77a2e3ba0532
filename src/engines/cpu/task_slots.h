// SPDX-License-Identifier: Apache-2.0
// Tasks that need scratch memory: as many slots as threads, each with its own scratch, taking tasks until
// none is left.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {

// Bytes of a part of the workspace that holds `count` elements of T; parts that follow each other stay
// aligned.
template <class T>
size_t part_bytes(int64_t count) {
  constexpr size_t kAlignment = 64;
  return (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
}

// Part of a piece of memory.
template <class T>
struct Part {
  size_t at = 0;
  T* in(std::byte* memory) const { return reinterpret_cast<T*>(memory + at); }
};
// Parts that follow each other.
struct Parts {
  template <class T>
  Part<T> add(int64_t count) {
    return {std::exchange(bytes, bytes + part_bytes<T>(count))};
  }
  size_t bytes = 0;
};
// A workspace: what all tasks share, then the slots.
struct Slots {
  size_t bytes() const { return shared.bytes + static_cast<size_t>(count) * own.bytes; }
  std::byte* at(std::byte* workspace, int64_t slot) const {
    return workspace + shared.bytes + static_cast<size_t>(slot) * own.bytes;
  }
  int64_t count = 1;
  Parts shared = {}, own = {};
};

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

// Two lists of tasks, the second of which reads what the first one wrote: first(task, slot) for all of one,
// then second(task, slot) for all of the other. One loop of the pool: waking a thread for each of them takes
// longer than most first stages, and here it wakes while others are in the first. Who comes to the end of it
// early waits for tasks that others are in, never for one that nobody has taken. There are no more slots in
// use than the second stage has tasks.
template <class First, class Second>
void run_stages(runtime::ThreadPool& pool, int64_t slots, int64_t first_tasks, const First& first,
                int64_t second_tasks, const Second& second) {
  struct alignas(64) Counter {
    std::atomic<int64_t> value{0};
    int64_t take() { return value.fetch_add(1, std::memory_order_relaxed); }
  };
  Counter first_next, first_done, second_next;
  const int64_t tasks = first_tasks > second_tasks ? first_tasks : second_tasks;
  pool.parallel_for(slots < tasks ? slots : tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      for (int64_t task = first_next.take(); task < first_tasks; task = first_next.take()) {
        first(task, slot);
        first_done.value.fetch_add(1, std::memory_order_release);
      }
      constexpr int kSpins = 4096;  // about 10 us; then whoever has the work may need this core
      for (int spins = 0; first_done.value.load(std::memory_order_acquire) < first_tasks; ++spins)
        if (spins >= kSpins) std::this_thread::yield();
      for (int64_t task = second_next.take(); task < second_tasks; task = second_next.take())
        second(task, slot);
    }
  });
}

// The same as run_tasks where tasks only move memory: each slot begins with a range of tasks of its own, the
// same in every call, so that a core finds again in its caches what it left there; then it helps the others.
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
