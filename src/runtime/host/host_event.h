// SPDX-License-Identifier: Apache-2.0
// HostEvent: the point of a host stream at which it was last recorded, and the time at which that was
// reached.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/host/timeline.h"
#include "runtime/stream.h"

namespace retrograd::runtime {

class HostEvent final : public Event {
 public:
  HostEvent(Device& device, bool timing) : device_(device), timing_(timing) {}

  Device& device() const override { return device_; }
  EventState state() const override;
  Status synchronize() override;
  void reset() override;
  Result<float> elapsed_since(const Event& start) const override;

  // For streams. Moves the event to `point`; the number returned names this record.
  uint64_t move_to(TimelinePoint point);
  // The stream got there. Nothing happens when the event was recorded again or reset meanwhile.
  void stamp(uint64_t record);
  // Where the latest record is; nothing to wait for when there is none.
  TimelinePoint point() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // `role` names the event in the message.
  Result<Time> time(const char* role) const;

  Device& device_;
  const bool timing_;
  mutable std::mutex mutex_;
  bool recorded_ = false;
  uint64_t record_ = 0;
  TimelinePoint point_;
  std::optional<Time> time_;
};

// What a stream of the CPU can record and wait for; kNullArgument and kWrongDevice for anything else.
Result<std::shared_ptr<HostEvent>> as_host_event(const std::shared_ptr<Event>& event);
// A record belongs to the device of the event; a wait may cross devices.
Status check_same_device(const HostEvent& event, const Device& device);

}  // namespace retrograd::runtime
