// SPDX-License-Identifier: Apache-2.0
// CudaDevice: one NVIDIA GPU. A stream is a cudaStream_t; the null stream is the legacy default stream.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/device.h"

namespace retrograd::runtime {

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, int major, int minor);

  const char* soc_name() const override { return soc_name_.c_str(); }
  const Machine& gpu_machine() const override { return machine_; }
  Result<void*> allocate(size_t bytes) override;
  void deallocate(void* address) noexcept override;
  // Pinned.
  Result<void*> allocate_host(size_t bytes) override;
  void deallocate_host(void* address) noexcept override;
  Result<MemoryInfo> memory_info() const override;

  // Ordered as the legacy default stream is: after all work of streams that do not opt out of it.
  Status copy(void* destination, const void* source, size_t bytes) override;
  Status fill(void* destination, int value, size_t bytes) override;

  Status synchronize() override;

  Result<std::shared_ptr<Stream>> create_stream() override;
  Result<std::shared_ptr<Event>> create_event(bool timing) override;
  std::shared_ptr<Stream> null_stream() override { return null_stream_; }
  // Remembered, so that the second call with a stream allocates nothing. Never destroys it.
  std::shared_ptr<Stream> adopt_stream(void* native) override;

 private:
  std::string soc_name_;
  Machine machine_;
  std::shared_ptr<Stream> null_stream_;
  std::mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<Stream>> adopted_;
};

}  // namespace retrograd::runtime
