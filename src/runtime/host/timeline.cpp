// SPDX-License-Identifier: Apache-2.0
// Counting finished tasks of a host stream, and waiting for a count.
#include "runtime/host/timeline.h"

#include <algorithm>

#include "base/thread_slot.h"

namespace retrograd::runtime {
namespace {

const ThreadSlot<const Timeline> timeline_of_this_thread;

// Beyond this a deadline could overflow the clock, and nobody is there to see the difference.
constexpr std::chrono::hours kLongestTimeout{24 * 365 * 10};

}  // namespace

void Timeline::advance() {
  {
    std::lock_guard lock(mutex_);
    done_.store(done() + 1, std::memory_order_release);
  }
  advanced_.notify_all();
}

Status Timeline::wait(uint64_t count, std::chrono::milliseconds timeout) const {
  const auto reached = [&] { return done() >= count; };
  if (reached()) return Status::ok();
  if (timeline_of_this_thread.get() == this)
    return Status(Code::kInvalidArgument, "a task of a stream cannot wait for its own stream to go on");
  std::unique_lock lock(mutex_);
  if (timeout >= kLongestTimeout) {
    advanced_.wait(lock, reached);
    return Status::ok();
  }
  const auto limit = std::max(timeout, std::chrono::milliseconds::zero());
  if (advanced_.wait_until(lock, std::chrono::steady_clock::now() + limit, reached)) return Status::ok();
  return Status(Code::kTimeout, "{} tasks of the stream were not done after {} ms", count - done(),
                limit.count());
}

// Where a thread has no room for it, a task that waits for its own stream is not noticed.
Timeline::TaskScope::TaskScope(const Timeline& timeline) : outer_(timeline_of_this_thread.get()) {
  static_cast<void>(timeline_of_this_thread.set(&timeline));
}

Timeline::TaskScope::~TaskScope() { static_cast<void>(timeline_of_this_thread.set(outer_)); }

bool Timeline::on_a_worker() { return timeline_of_this_thread.get() != nullptr; }

}  // namespace retrograd::runtime
