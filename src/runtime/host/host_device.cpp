// SPDX-License-Identifier: Apache-2.0
// Memory, streams and events of the CPU.
#include "runtime/host/host_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "runtime/host/host_event.h"
#include "runtime/host/host_memory.h"
#include "runtime/host/host_stream.h"
#include "runtime/host/host_transfer.h"
#include "runtime/host/inline_stream.h"

namespace retrograd::runtime {
namespace {

// More than the machine has is refused here: an allocator that overcommits would grant it and the process be
// killed later, and a sanitizer's allocator ends the process instead of answering null.
size_t largest_block() {
  const auto info = host_memory_info();
  return info.is_ok() ? std::min<size_t>(info.value().total_bytes, PTRDIFF_MAX) : PTRDIFF_MAX;
}

}  // namespace

HostDevice::HostDevice(int index)
    : Device(DeviceKind::kCpu, index),
      largest_block_(largest_block()),
      null_stream_(std::make_shared<InlineStream>(*this)) {}

Result<void*> HostDevice::allocate(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a block of 0 bytes was asked for; at least 1");
  if (bytes > largest_block_)
    return Status(Code::kOutOfMemory,
                  fmt::format("{} bytes were asked for on {}, which has {}", bytes, label(), largest_block_));
  void* address = nullptr;
  if (posix_memalign(&address, kAlignment, bytes) != 0)
    return Status(Code::kOutOfMemory, fmt::format("no memory for {} bytes on {}", bytes, label()));
  return address;
}

void HostDevice::deallocate(void* address) noexcept { std::free(address); }

Result<MemoryInfo> HostDevice::memory_info() const { return host_memory_info(); }

Status HostDevice::copy(void* destination, const void* source, size_t bytes) {
  RG_CHECK(check_copy(destination, source, bytes));
  copy_bytes(destination, source, bytes);
  return Status::ok();
}

Status HostDevice::fill(void* destination, int value, size_t bytes) {
  RG_CHECK(check_fill(destination, bytes));
  fill_bytes(destination, value, bytes);
  return Status::ok();
}

Result<std::shared_ptr<Stream>> HostDevice::create_stream() { return HostStream::create(*this); }

Result<std::shared_ptr<Event>> HostDevice::create_event(bool timing) {
  try {
    return std::shared_ptr<Event>(std::make_shared<HostEvent>(*this, timing));
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, fmt::format("no memory for an event of {}", label()));
  }
}

}  // namespace retrograd::runtime
