// SPDX-License-Identifier: Apache-2.0
// Records, waits and times of events on a GPU.
#include "runtime/cuda/cuda_event.h"

#include <fmt/format.h>

#include <new>

#include "runtime/cuda/cuda_status.h"
#include "runtime/device.h"

namespace retrograd::runtime {

Result<std::shared_ptr<Event>> CudaEvent::create(Device& device, bool timing) {
  const DeviceGuard guard(device.index());
  RG_CHECK(guard.status());
  cudaEvent_t event = nullptr;
  RG_CUDA(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
          fmt::format("cudaEventCreateWithFlags on {}", device.label()));
  try {
    return std::shared_ptr<Event>(std::make_shared<CudaEvent>(device, event, timing));
  } catch (const std::bad_alloc&) {
    static_cast<void>(cudaEventDestroy(event));
    return Status(Code::kOutOfMemory, "no memory for an event of {}", device.label());
  }
}

CudaEvent::~CudaEvent() {
  const DeviceGuard guard(device_.index());
  if (cudaEventDestroy(event_) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

EventState CudaEvent::state() const {
  if (!recorded_) return EventState::kUnrecorded;
  const cudaError_t error = cudaEventQuery(event_);
  if (error != cudaErrorNotReady) return EventState::kComplete;
  static_cast<void>(cudaGetLastError());
  return EventState::kPending;
}

Status CudaEvent::synchronize() {
  if (!recorded_) return Status::ok();
  RG_CUDA(cudaEventSynchronize(event_), fmt::format("cudaEventSynchronize on {}", device_.label()));
  return Status::ok();
}

Status CudaEvent::record_on(cudaStream_t stream) {
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  RG_CUDA(cudaEventRecord(event_, stream), fmt::format("cudaEventRecord on {}", device_.label()));
  recorded_ = true;
  return Status::ok();
}

Status CudaEvent::check_time(const char* role) const {
  const char* why = !timing_                          ? "it was created without timing"
                    : !recorded_                      ? "it was never recorded, or was reset since"
                    : state() == EventState::kPending ? "its latest record is still pending"
                                                      : nullptr;
  if (why == nullptr) return Status::ok();
  return Status(Code::kInvalidArgument, "the {} event has no time: {}", role, why);
}

Result<float> CudaEvent::elapsed_since(const Event& start) const {
  const auto* from = dynamic_cast<const CudaEvent*>(&start);
  if (from == nullptr || &start.device() != &device_)
    return Status(Code::kWrongDevice,
                  "the start event is of {}, the end event of {}; both must be of one device",
                  start.device().label(), device_.label());
  RG_CHECK(from->check_time("start"));
  RG_CHECK(check_time("end"));
  const DeviceGuard guard(device_.index());
  RG_CHECK(guard.status());
  float milliseconds = 0;
  RG_CUDA(cudaEventElapsedTime(&milliseconds, from->event_, event_),
          fmt::format("cudaEventElapsedTime on {}", device_.label()));
  return milliseconds;
}

Result<std::shared_ptr<CudaEvent>> as_cuda_event(const std::shared_ptr<Event>& event) {
  if (event == nullptr) return Status(Code::kNullArgument, "the event is null");
  auto own = std::dynamic_pointer_cast<CudaEvent>(event);
  if (own == nullptr)
    return Status(Code::kWrongDevice, "the event is of {}; a stream of a GPU takes events of GPUs",
                  event->device().label());
  return own;
}

}  // namespace retrograd::runtime
