// SPDX-License-Identifier: Apache-2.0
// HostStream: an in-order queue on the CPU with a worker thread of its own.
#pragma once

#include <memory>
#include <thread>

#include "runtime/stream.h"

namespace retrograd::runtime {

class TaskQueue;

// Room for TaskQueue::kCapacity tasks is made at creation, so submitting allocates nothing; a caller who
// finds the queue full waits until a task is done. A task must not throw. Tasks may submit to any stream; one
// that finds its own stream full gets kInvalidArgument, as waiting would never end.
//
// The destructor lets everything submitted finish, then joins. Inside a task of any host stream it does not
// wait (that could be waiting for itself): the worker finishes the work and ends alone.
class HostStream final : public Stream {
 public:
  // kOutOfMemory when there is no memory or no thread to be had.
  static Result<std::shared_ptr<Stream>> create(Device& device);
  ~HostStream() override;

  Device& device() const override { return device_; }
  Status submit(Task task) override;
  Status submit_brief(Task task) override;
  Status synchronize(std::chrono::milliseconds timeout) override;
  bool idle() const override;
  Status record(std::shared_ptr<Event> event) override;
  Status wait(std::shared_ptr<Event> event) override;
  // The dropped tasks are destroyed by the worker, once it has finished what it is at. A wait for an event
  // that has begun is finished too. Events whose record is dropped complete, without a time.
  void abandon() override;
  Status copy(void* destination, const void* source, size_t bytes) override;
  Status fill(void* destination, int value, size_t bytes) override;

 private:
  HostStream(Device& device, std::shared_ptr<TaskQueue> queue);
  Device& device_;
  std::shared_ptr<TaskQueue> queue_;
  std::thread worker_;
};

}  // namespace retrograd::runtime
