// SPDX-License-Identifier: Apache-2.0
// Stream and Event: in-order queues of work on one device, and the points that order them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/status.h"
#include "runtime/task.h"

namespace retrograd::runtime {

class Device;

enum class EventState : unsigned char { kUnrecorded, kPending, kComplete };

// A point in a stream. Recording again moves the point; who waited before waits for the old one.
class Event {
 public:
  virtual ~Event() = default;
  virtual Device& device() const = 0;
  virtual EventState state() const = 0;
  // Waits for the latest record; returns at once when there is none.
  virtual Status synchronize() = 0;
  // Back to kUnrecorded.
  virtual void reset() = 0;
  // Milliseconds from `start` to this event; both complete, of one device, and made with timing.
  virtual Result<float> elapsed_since(const Event& start) const = 0;
};

class Stream {
 public:
  static constexpr auto kForever = std::chrono::milliseconds::max();

  virtual ~Stream() = default;
  virtual Device& device() const = 0;
  // The cudaStream_t of a GPU's stream, which is the caller's handle then; null on the CPU and for the null
  // stream.
  virtual void* native_handle() const { return nullptr; }
  // Puts work behind everything submitted before. Neither allocates nor waits, except that a host stream
  // holds its caller back while a thousand tasks are pending, as a full hardware queue does.
  virtual Status submit(Task task) = 0;
  // The same for work that takes no longer than handing it to another thread would, and uses no stream: one
  // that has nothing pending may run it at once, on the calling thread.
  virtual Status submit_brief(Task task) { return submit(std::move(task)); }
  // Waits until everything submitted so far is done; kTimeout when it took longer.
  virtual Status synchronize(std::chrono::milliseconds timeout = kForever) = 0;
  virtual bool idle() const = 0;
  virtual Status record(std::shared_ptr<Event> event) = 0;
  // Work submitted from now on starts after the event's latest record; none recorded: no wait.
  virtual Status wait(std::shared_ptr<Event> event) = 0;
  // Drops what has not started; what runs is finished.
  virtual void abandon() = 0;

  virtual Status copy(void* destination, const void* source, size_t bytes) = 0;
  virtual Status fill(void* destination, int value, size_t bytes) = 0;
};

}  // namespace retrograd::runtime
