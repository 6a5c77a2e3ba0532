// SPDX-License-Identifier: Apache-2.0
// Timeline: how many tasks of one host stream are done. Events and synchronising callers wait on it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "runtime/stream.h"

namespace retrograd::runtime {

// It outlives its stream as long as an event refers to it, and is small for that reason.
class Timeline {
 public:
  uint64_t done() const { return done_.load(std::memory_order_acquire); }
  void advance();
  // Until `count` tasks are done: kTimeout when that took longer, kInvalidArgument when the caller is a task
  // of this very stream, which would wait for itself.
  Status wait(uint64_t count, std::chrono::milliseconds timeout = Stream::kForever) const;

  // While it lives, its thread runs tasks of the stream.
  class TaskScope {
   public:
    explicit TaskScope(const Timeline& timeline);
    ~TaskScope();
    TaskScope(const TaskScope&) = delete;
    TaskScope& operator=(const TaskScope&) = delete;

   private:
    const Timeline* outer_;
  };
  // Whether the caller runs inside a task of any host stream.
  static bool on_a_worker();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable advanced_;
  std::atomic<uint64_t> done_{0};  // written under the mutex
};

// A place in a stream. Streams go in order, so "everything before here is done" is one comparison, and a
// record or a wait costs no allocation however many of them are pending.
struct TimelinePoint {
  std::shared_ptr<const Timeline> timeline;  // null: nothing to wait for
  uint64_t count = 0;

  bool complete() const { return timeline == nullptr || timeline->done() >= count; }
  Status wait() const { return timeline == nullptr ? Status::ok() : timeline->wait(count); }
};

}  // namespace retrograd::runtime
