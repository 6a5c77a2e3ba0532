// SPDX-License-Identifier: Apache-2.0
// TaskQueue: the ring of tasks between the callers of a host stream and its worker; both keep it alive.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "runtime/host/timeline.h"
#include "runtime/task.h"

namespace retrograd::runtime {

class TaskQueue {
 public:
  static constexpr size_t kCapacity = 1024;

  explicit TaskQueue(ExecutionContext context) : context_(context) {}

  // Task number n, counted from 0, is done when timeline()->done() > n.
  const std::shared_ptr<Timeline>& timeline() const { return timeline_; }

  // Puts make_task(point) behind everything else; `point` is where that task will be done. The task is made
  // while the queue is held, so that what it notes about its place cannot be overtaken by another caller.
  template <class MakeTask>
  Status push(MakeTask make_task) {
    {
      std::unique_lock lock(mutex_);
      while (pushed_ - timeline_->done() >= kCapacity) {
        const uint64_t room_after = pushed_ + 1 - kCapacity;
        lock.unlock();
        RG_CHECK(timeline_->wait(room_after));
        lock.lock();
      }
      slot(pushed_) = make_task(TimelinePoint{timeline_, pushed_ + 1});
      ++pushed_;
    }
    changed_.notify_one();
    return Status::ok();
  }

  // Runs the task on the calling thread, as if it had been pushed and the worker had taken it at once; false,
  // and nothing done, unless everything pushed before is done. What is pushed meanwhile waits.
  bool run_if_idle(Task& task);

  uint64_t pushed() const;
  // What has not started will be destroyed without having run.
  void drop_pending();
  // Nothing will be pushed any more: work() returns when it has done the rest.
  void close();
  // The worker's life.
  void work();

 private:
  Task& slot(uint64_t number) { return slots_[number % kCapacity]; }

  ExecutionContext context_;
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t pushed_ = 0;
  uint64_t next_ = 0;         // what the worker takes next
  bool caller_runs_ = false;  // the task before that is being run by run_if_idle
  uint64_t dropped_before_ = 0;
  bool closed_ = false;
  std::array<Task, kCapacity> slots_;
};

}  // namespace retrograd::runtime
