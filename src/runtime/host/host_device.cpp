// SPDX-License-Identifier: Apache-2.0
// Memory, streams and events of the CPU.
#include "runtime/host/host_device.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "base/per_process.h"
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

// The streams of all CPU devices, in the order in which they were made.
class StreamList {
 public:
  static StreamList& instance() {
    static constinit PerProcess<StreamList> list;
    return list.get();
  }
  // The same stream, which leaves the list when it is destroyed: a dead entry would keep its memory.
  std::shared_ptr<Stream> add(std::shared_ptr<Stream> stream) {
    const auto listed = std::make_shared<Listed>(*this, std::move(stream));
    std::shared_ptr<Stream> handle(listed, listed->stream.get());
    std::lock_guard lock(mutex_);
    streams_.emplace(last_ + 1, handle);
    listed->number = ++last_;
    return handle;
  }
  uint64_t last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  // The first live stream after number `number`, which becomes its own; null when there is none.
  std::shared_ptr<Stream> next(uint64_t& number) const {
    std::lock_guard lock(mutex_);
    for (auto it = streams_.upper_bound(number); it != streams_.end(); ++it) {
      number = it->first;
      if (auto stream = it->second.lock()) return stream;
    }
    return nullptr;
  }

 private:
  struct Listed {
    Listed(StreamList& in, std::shared_ptr<Stream> own) : list(in), stream(std::move(own)) {}
    ~Listed() {
      if (number == 0) return;
      std::lock_guard lock(list.mutex_);
      list.streams_.erase(number);
    }
    StreamList& list;
    std::shared_ptr<Stream> stream;
    uint64_t number = 0;  // 0: not in the list yet
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Stream>> streams_;
  uint64_t last_ = 0;
};

}  // namespace

HostDevice::HostDevice(int index)
    : Device(DeviceKind::kCpu, index),
      largest_block_(largest_block()),
      null_stream_(std::make_shared<InlineStream>(*this)) {}

Result<void*> HostDevice::allocate(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a block of 0 bytes was asked for; at least 1");
  if (bytes > largest_block_)
    return Status(Code::kOutOfMemory, "{} bytes were asked for on {}, which has {}", bytes, label(),
                  largest_block_);
  void* address = nullptr;
  if (posix_memalign(&address, kAlignment, bytes) != 0)
    return Status(Code::kOutOfMemory, "no memory for {} bytes on {}", bytes, label());
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

// Streams that are made meanwhile are not waited for. Allocates nothing.
Status HostDevice::synchronize() {
  const StreamList& list = StreamList::instance();
  const uint64_t last = list.last();
  uint64_t number = 0;
  while (const auto stream = list.next(number)) {
    if (number > last) break;
    if (&stream->device() == this) RG_CHECK(stream->synchronize());
  }
  return Status::ok();
}

Result<std::shared_ptr<Stream>> HostDevice::create_stream() {
  RG_TRY(auto stream, HostStream::create(*this));
  try {
    return StreamList::instance().add(std::move(stream));
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, "no memory for a stream of {}", label());
  }
}

Result<std::shared_ptr<Event>> HostDevice::create_event(bool timing) {
  try {
    return std::shared_ptr<Event>(std::make_shared<HostEvent>(*this, timing));
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, "no memory for an event of {}", label());
  }
}

}  // namespace retrograd::runtime
