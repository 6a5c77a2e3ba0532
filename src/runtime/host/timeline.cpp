// SPDX-License-Identifier: Apache-2.0
// Counting finished tasks of a host stream, and waiting for a count.
#include "runtime/host/timeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace retrograd::runtime {
namespace {

thread_local const Timeline* timeline_of_this_thread = nullptr;

// Beyond this a deadline could overflow the clock, and nobody is there to see the difference.
constexpr std::chrono::hours kLongestTimeout{24 * 365 * 10};

}  // namespace

uint64_t Timeline::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

void Timeline::advance() {
  {
    std::lock_guard lock(mutex_);
    ++done_;
  }
  advanced_.notify_all();
}

Status Timeline::wait(uint64_t count, std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  const auto reached = [&] { return done_ >= count; };
  if (reached()) return Status::ok();
  if (timeline_of_this_thread == this)
    return Status(Code::kInvalidArgument, "a task of a stream cannot wait for its own stream to go on");
  if (timeout >= kLongestTimeout) {
    advanced_.wait(lock, reached);
    return Status::ok();
  }
  const auto limit = std::max(timeout, std::chrono::milliseconds::zero());
  if (advanced_.wait_until(lock, std::chrono::steady_clock::now() + limit, reached)) return Status::ok();
  return Status(Code::kTimeout, fmt::format("{} tasks of the stream were not done after {} ms", count - done_,
                                            limit.count()));
}

void Timeline::bind_to_this_thread() const { timeline_of_this_thread = this; }

bool Timeline::on_a_worker() { return timeline_of_this_thread != nullptr; }

}  // namespace retrograd::runtime
