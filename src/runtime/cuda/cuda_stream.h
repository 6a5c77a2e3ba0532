// SPDX-License-Identifier: Apache-2.0
// CudaStream: a cudaStream_t. Tasks run on the caller's thread at once and put kernels on it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "runtime/stream.h"

namespace retrograd::runtime {

class CudaStream final : public Stream {
 public:
  enum class Ownership : unsigned char { kOwned, kForeign };

  // One that waits for the legacy default stream and is waited for by it, as cudaStreamCreate makes them.
  static Result<std::shared_ptr<Stream>> create(Device& device);
  CudaStream(Device& device, cudaStream_t stream, Ownership ownership);
  ~CudaStream() override;

  Device& device() const override { return device_; }
  void* native_handle() const override { return stream_; }
  // Runs the task on this thread; it launches and returns. An error of a launch is this call's.
  Status submit(Task task) override;
  Status synchronize(std::chrono::milliseconds timeout) override;
  bool idle() const override;
  Status record(std::shared_ptr<Event> event) override;
  Status wait(std::shared_ptr<Event> event) override;
  // What is on a GPU's queue cannot be taken back.
  void abandon() override {}
  Status copy(void* destination, const void* source, size_t bytes) override;
  Status fill(void* destination, int value, size_t bytes) override;

 private:
  Device& device_;
  cudaStream_t stream_;
  Ownership ownership_;
};

}  // namespace retrograd::runtime
