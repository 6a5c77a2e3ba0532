// SPDX-License-Identifier: Apache-2.0
// The callers' side of a host stream.
#include "runtime/host/host_stream.h"

#include <new>
#include <system_error>
#include <utility>

#include "runtime/device.h"
#include "runtime/host/host_event.h"
#include "runtime/host/host_transfer.h"
#include "runtime/host/task_queue.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {

Result<std::shared_ptr<Stream>> HostStream::create(Device& device) {
  try {
    auto queue = std::make_shared<TaskQueue>(ExecutionContext{.pool = &ThreadPool::instance()});
    // Made before the thread: should it fail, there is no thread to take back.
    std::shared_ptr<HostStream> stream(new HostStream(device, queue));
    stream->worker_ = std::thread([queue = std::move(queue)] { queue->work(); });
    return std::shared_ptr<Stream>(std::move(stream));
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, "no memory for a stream of {}", device.label());
  } catch (const std::system_error& error) {
    return Status(Code::kOutOfMemory, "no thread for a stream of {}: {}", device.label(), error.what());
  }
}

HostStream::HostStream(Device& device, std::shared_ptr<TaskQueue> queue)
    : device_(device), queue_(std::move(queue)) {}

HostStream::~HostStream() {
  if (!worker_.joinable()) return;
  queue_->close();
  if (Timeline::on_a_worker()) {
    worker_.detach();
  } else {
    worker_.join();
  }
}

Status HostStream::submit(Task task) {
  if (!task) return Status(Code::kNullArgument, "the task is empty");
  return queue_->push([&](const TimelinePoint&) { return std::move(task); });
}

Status HostStream::submit_brief(Task task) {
  if (!task) return Status(Code::kNullArgument, "the task is empty");
  if (queue_->run_if_idle(task)) return Status::ok();
  return queue_->push([&](const TimelinePoint&) { return std::move(task); });
}

Status HostStream::synchronize(std::chrono::milliseconds timeout) {
  return queue_->timeline()->wait(queue_->pushed(), timeout);
}

bool HostStream::idle() const {
  // In this order: what is pushed in between makes the answer "busy", not a wrong "idle".
  const uint64_t pushed = queue_->pushed();
  return queue_->timeline()->done() >= pushed;
}

Status HostStream::record(std::shared_ptr<Event> event) {
  RG_TRY(auto host_event, as_host_event(event));
  RG_CHECK(check_same_device(*host_event, device_));
  return queue_->push([&](TimelinePoint point) -> Task {
    const uint64_t record = host_event->move_to(std::move(point));
    return [host_event, record](ExecutionContext&) { host_event->stamp(record); };
  });
}

Status HostStream::wait(std::shared_ptr<Event> event) {
  RG_TRY(const auto host_event, as_host_event(event));
  TimelinePoint point = host_event->point();
  if (point.complete() || point.timeline == queue_->timeline()) return Status::ok();
  return submit([point = std::move(point)](ExecutionContext&) {
    // Cannot fail: it is another stream's timeline, and there is no time limit.
    static_cast<void>(point.wait());
  });
}

void HostStream::abandon() { queue_->drop_pending(); }

Status HostStream::copy(void* destination, const void* source, size_t bytes) {
  RG_CHECK(check_copy(destination, source, bytes));
  return submit([=](ExecutionContext&) { copy_bytes(destination, source, bytes); });
}

Status HostStream::fill(void* destination, int value, size_t bytes) {
  RG_CHECK(check_fill(destination, bytes));
  return submit([=](ExecutionContext&) { fill_bytes(destination, value, bytes); });
}

}  // namespace retrograd::runtime
