// SPDX-License-Identifier: Apache-2.0
// The worker's side of a host stream's queue.
#include "runtime/host/task_queue.h"

namespace retrograd::runtime {

uint64_t TaskQueue::pushed() const {
  std::lock_guard lock(mutex_);
  return pushed_;
}

void TaskQueue::drop_pending() {
  std::lock_guard lock(mutex_);
  dropped_before_ = pushed_;
}

void TaskQueue::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

bool TaskQueue::run_if_idle(Task& task) {
  {
    std::lock_guard lock(mutex_);
    if (caller_runs_ || timeline_->done() != pushed_) return false;
    caller_runs_ = true;
    ++pushed_;
    ++next_;
  }
  {
    const Timeline::TaskScope here(*timeline_);
    task(context_);
    task.reset();
  }
  timeline_->advance();
  bool more = false;
  {
    std::lock_guard lock(mutex_);
    caller_runs_ = false;
    more = pushed_ != next_ || closed_;
  }
  if (more) changed_.notify_one();
  return true;
}

void TaskQueue::work() {
  const Timeline::TaskScope here(*timeline_);
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !caller_runs_ && (pushed_ != next_ || closed_); });
    if (pushed_ == next_) return;
    const bool dropped = next_ < dropped_before_;
    Task& task = slot(next_);
    ++next_;
    lock.unlock();
    if (!dropped) task(context_);
    // Before the task counts as done: who has synchronised finds everything it held released.
    task.reset();
    timeline_->advance();
  }
}

}  // namespace retrograd::runtime
