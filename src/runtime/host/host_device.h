// SPDX-License-Identifier: Apache-2.0
// HostDevice: the CPU. Its memory is the process's own, its streams are threads.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace retrograd::runtime {

// devices() holds number 0. Tests make others, as further devices; one must outlive its streams and events.
class HostDevice final : public Device {
 public:
  static constexpr size_t kAlignment = 64;

  explicit HostDevice(int index);

  const char* soc_name() const override { return "Retrograd-CPU"; }
  Result<void*> allocate(size_t bytes) override;
  void deallocate(void* address) noexcept override;
  Result<void*> allocate_host(size_t bytes) override { return allocate(bytes); }
  void deallocate_host(void* address) noexcept override { deallocate(address); }
  Result<MemoryInfo> memory_info() const override;

  Status copy(void* destination, const void* source, size_t bytes) override;
  Status fill(void* destination, int value, size_t bytes) override;

  // Waits for all streams that it made.
  Status synchronize() override;

  Result<std::shared_ptr<Stream>> create_stream() override;
  Result<std::shared_ptr<Event>> create_event(bool timing) override;
  std::shared_ptr<Stream> null_stream() override { return null_stream_; }

 private:
  size_t largest_block_;
  std::shared_ptr<Stream> null_stream_;
};

}  // namespace retrograd::runtime
