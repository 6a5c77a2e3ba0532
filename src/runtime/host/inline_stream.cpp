// SPDX-License-Identifier: Apache-2.0
// Running work on the calling thread.
#include "runtime/host/inline_stream.h"

#include "runtime/host/host_event.h"
#include "runtime/host/host_transfer.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {

// The pool is made here and not at the first submit, which must not allocate.
InlineStream::InlineStream(Device& device) : device_(device) { ThreadPool::instance(); }

Status InlineStream::submit(Task task) {
  if (!task) return Status(Code::kNullArgument, "the task is empty");
  // Asked for each time: a forked child makes its own at its first.
  ExecutionContext context{.pool = &ThreadPool::instance()};
  task(context);
  return Status::ok();
}

Status InlineStream::synchronize(std::chrono::milliseconds) { return Status::ok(); }

Status InlineStream::record(std::shared_ptr<Event> event) {
  RG_TRY(const auto host_event, as_host_event(event));
  RG_CHECK(check_same_device(*host_event, device_));
  host_event->stamp(host_event->move_to(TimelinePoint{}));
  return Status::ok();
}

Status InlineStream::wait(std::shared_ptr<Event> event) {
  RG_TRY(const auto host_event, as_host_event(event));
  return host_event->synchronize();
}

Status InlineStream::copy(void* destination, const void* source, size_t bytes) {
  RG_CHECK(check_copy(destination, source, bytes));
  copy_bytes(destination, source, bytes);
  return Status::ok();
}

Status InlineStream::fill(void* destination, int value, size_t bytes) {
  RG_CHECK(check_fill(destination, bytes));
  fill_bytes(destination, value, bytes);
  return Status::ok();
}

}  // namespace retrograd::runtime
