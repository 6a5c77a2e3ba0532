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

void TaskQueue::work() {
  timeline_->bind_to_this_thread();
  for (uint64_t next = 0;; ++next) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pushed_ != next || closed_; });
    if (pushed_ == next) return;
    const bool dropped = next < dropped_before_;
    lock.unlock();
    Task& task = slot(next);
    if (!dropped) task(context_);
    // Before the task counts as done: who has synchronised finds everything it held released.
    task.reset();
    timeline_->advance();
  }
}

}  // namespace retrograd::runtime
