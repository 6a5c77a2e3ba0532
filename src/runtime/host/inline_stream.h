// SPDX-License-Identifier: Apache-2.0
// InlineStream: what a null stream is on the CPU. Work runs on the calling thread, to its end.
#pragma once

#include <memory>

#include "runtime/stream.h"

namespace retrograd::runtime {

// Several threads may use it at once; each runs its own work, and only a thread's own work is in order. So
// nothing is ever pending when a caller asks, and synchronising has nothing to wait for. Tasks may submit.
class InlineStream final : public Stream {
 public:
  explicit InlineStream(Device& device);

  Device& device() const override { return device_; }
  Status submit(Task task) override;
  Status synchronize(std::chrono::milliseconds timeout) override;
  bool idle() const override { return true; }
  Status record(std::shared_ptr<Event> event) override;
  // Blocks the caller until the event's latest record is done.
  Status wait(std::shared_ptr<Event> event) override;
  void abandon() override {}
  Status copy(void* destination, const void* source, size_t bytes) override;
  Status fill(void* destination, int value, size_t bytes) override;

 private:
  Device& device_;
};

}  // namespace retrograd::runtime
