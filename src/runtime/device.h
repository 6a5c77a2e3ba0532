// SPDX-License-Identifier: Apache-2.0
// Device: one processor with its memory, streams and events; all that the layers above see of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace retrograd::runtime {

enum class DeviceKind : unsigned char { kCpu, kCuda };

struct MemoryInfo {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  DeviceKind kind() const { return kind_; }
  int index() const { return index_; }
  // "cpu:0", "cuda:1": logs and messages.
  std::string label() const;
  // "Retrograd-CPU", "Retrograd-CUDA-sm90": what aclrtGetSocName answers.
  virtual const char* soc_name() const = 0;

  // What planning knows of it; of a CPU, engines/machines.h tells.
  virtual const Machine& gpu_machine() const;

  // At least 64-byte aligned. `bytes` is not 0.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void deallocate(void* address) noexcept = 0;
  // Memory of the host that copies to this device run fast from.
  virtual Result<void*> allocate_host(size_t bytes) = 0;
  virtual void deallocate_host(void* address) noexcept = 0;
  virtual Result<MemoryInfo> memory_info() const = 0;

  // To its end before it returns; the direction is found from the addresses.
  virtual Status copy(void* destination, const void* source, size_t bytes) = 0;
  virtual Status fill(void* destination, int value, size_t bytes) = 0;

  // Waits until every stream, of whichever interface, has finished what was put on it; on a GPU streams that
  // callers made themselves, too.
  virtual Status synchronize() = 0;

  virtual Result<std::shared_ptr<Stream>> create_stream() = 0;
  virtual Result<std::shared_ptr<Event>> create_event(bool timing = true) = 0;
  // What a null infinirtStream_t stands for. CPU: each submit runs to its end before it returns.
  virtual std::shared_ptr<Stream> null_stream() = 0;
  // A stream that the caller made with the device's own means, as a cudaStream_t is; null where a device has
  // none such.
  virtual std::shared_ptr<Stream> adopt_stream(void* /*native*/) { return nullptr; }

 protected:
  Device(DeviceKind kind, int index) : kind_(kind), index_(index) {}

 private:
  DeviceKind kind_;
  int index_;
};

// All devices of this process, made at first use and never destroyed: one CPU device, and the GPUs. Asking
// for a CPU device alone does not look for GPUs, which takes a driver some time.
std::span<Device* const> devices();
// Null when there is none.
Device* find_device(DeviceKind kind, int index);
int device_count(DeviceKind kind);

// For devices(), from cuda/ or no_cuda/: one for each GPU that the driver shows, in its order; none without a
// driver. Never destroyed.
std::vector<Device*> make_cuda_devices();

}  // namespace retrograd::runtime
