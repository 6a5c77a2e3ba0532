// SPDX-License-Identifier: Apache-2.0
// Records, waits and times of events on the CPU.
#include "runtime/host/host_event.h"

#include <utility>

#include "runtime/device.h"

namespace retrograd::runtime {

EventState HostEvent::state() const {
  std::lock_guard lock(mutex_);
  if (!recorded_) return EventState::kUnrecorded;
  return point_.complete() ? EventState::kComplete : EventState::kPending;
}

Status HostEvent::synchronize() { return point().wait(); }

void HostEvent::reset() {
  std::lock_guard lock(mutex_);
  ++record_;
  recorded_ = false;
  point_ = {};
  time_.reset();
}

uint64_t HostEvent::move_to(TimelinePoint point) {
  std::lock_guard lock(mutex_);
  recorded_ = true;
  point_ = std::move(point);
  time_.reset();
  return ++record_;
}

void HostEvent::stamp(uint64_t record) {
  if (!timing_) return;
  std::lock_guard lock(mutex_);
  if (record == record_) time_ = std::chrono::steady_clock::now();
}

TimelinePoint HostEvent::point() const {
  std::lock_guard lock(mutex_);
  return point_;
}

Result<HostEvent::Time> HostEvent::time(const char* role) const {
  const auto refuse = [role](const char* why) {
    return Status(Code::kInvalidArgument, "the {} event has no time: {}", role, why);
  };
  if (!timing_) return refuse("it was created without timing");
  std::lock_guard lock(mutex_);
  if (!recorded_) return refuse("it was never recorded, or was reset since");
  if (!point_.complete()) return refuse("its latest record is still pending");
  if (!time_) return refuse("its latest record was dropped with the work of an abandoned stream");
  return *time_;
}

Result<float> HostEvent::elapsed_since(const Event& start) const {
  const auto* host_start = dynamic_cast<const HostEvent*>(&start);
  if (host_start == nullptr || &start.device() != &device_)
    return Status(Code::kWrongDevice,
                  "the start event is of {}, the end event of {}; both must be of one device",
                  start.device().label(), device_.label());
  RG_TRY(const Time from, host_start->time("start"));
  RG_TRY(const Time to, time("end"));
  return std::chrono::duration<float, std::milli>(to - from).count();
}

Result<std::shared_ptr<HostEvent>> as_host_event(const std::shared_ptr<Event>& event) {
  if (event == nullptr) return Status(Code::kNullArgument, "the event is null");
  auto host_event = std::dynamic_pointer_cast<HostEvent>(event);
  if (host_event == nullptr)
    return Status(Code::kWrongDevice, "the event is of {}; a stream of the CPU takes events of the CPU",
                  event->device().label());
  return host_event;
}

Status check_same_device(const HostEvent& event, const Device& device) {
  if (&event.device() == &device) return Status::ok();
  return Status(Code::kWrongDevice,
                "the event is of {}, the stream of {}; an event is recorded on its own device",
                event.device().label(), device.label());
}

}  // namespace retrograd::runtime
