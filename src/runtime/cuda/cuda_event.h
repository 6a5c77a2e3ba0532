// SPDX-License-Identifier: Apache-2.0
// CudaEvent: a cudaEvent_t, and whether it has been recorded, which CUDA cannot be asked.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

#include "runtime/stream.h"

namespace retrograd::runtime {

class CudaEvent final : public Event {
 public:
  static Result<std::shared_ptr<Event>> create(Device& device, bool timing);
  CudaEvent(Device& device, cudaEvent_t event, bool timing)
      : device_(device), event_(event), timing_(timing) {}
  ~CudaEvent() override;

  Device& device() const override { return device_; }
  EventState state() const override;
  Status synchronize() override;
  void reset() override { recorded_ = false; }
  Result<float> elapsed_since(const Event& start) const override;

  cudaEvent_t native() const { return event_; }
  Status record_on(cudaStream_t stream);

 private:
  Status check_time(const char* role) const;

  Device& device_;
  cudaEvent_t event_;
  bool timing_;
  std::atomic<bool> recorded_{false};
};

Result<std::shared_ptr<CudaEvent>> as_cuda_event(const std::shared_ptr<Event>& event);

}  // namespace retrograd::runtime
