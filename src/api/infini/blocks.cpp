// SPDX-License-Identifier: Apache-2.0
// A block passed to infinirtFreeAsync stays in the allocation table until its stream reaches the free. Until
// then it is on a list, so that freeing it twice cannot free memory that was handed out again.
#include "api/infini/blocks.h"

#include <mutex>
#include <set>

#include "api/infini/devices.h"
#include "base/per_process.h"

namespace retrograd::api::infini {
namespace {

using runtime::AllocationTable;
using runtime::MemoryOwner;
using runtime::MemorySpace;

class LeavingBlocks {
 public:
  static LeavingBlocks& instance() {
    static constinit PerProcess<LeavingBlocks> blocks;
    return blocks.get();
  }
  // False when it is leaving already.
  bool add(const void* address) {
    std::lock_guard lock(mutex_);
    return addresses_.insert(address).second;
  }
  void remove(const void* address) {
    std::lock_guard lock(mutex_);
    addresses_.erase(address);
  }
  bool contains(const void* address) const {
    std::lock_guard lock(mutex_);
    return addresses_.count(address) != 0;
  }

 private:
  mutable std::mutex mutex_;
  std::set<const void*> addresses_;
};

Status leaving_already(const void* address) {
  return Status(Code::kInvalidArgument, "ptr is {}, which infinirtFreeAsync was given already",
                fmt::ptr(address));
}

}  // namespace

Status allocate_block(void** out, size_t bytes, MemorySpace space) {
  if (out == nullptr) return null_pointer("p_ptr");
  void* address = nullptr;
  if (bytes != 0) {
    RG_TRY(address,
           AllocationTable::instance().allocate(current_device(), bytes, space, MemoryOwner::kInfini));
  }
  *out = address;
  return Status::ok();
}

Status free_block(void* address, MemorySpace space) {
  if (address == nullptr) return Status::ok();
  if (LeavingBlocks::instance().contains(address)) return leaving_already(address);
  const auto block = AllocationTable::instance().find(address);
  if (block && block->base == address) RG_CHECK(block->device->synchronize());
  return AllocationTable::instance().release(address, space, MemoryOwner::kInfini, "ptr");
}

Status free_block_later(void* address, runtime::Stream& stream) {
  if (address == nullptr) return Status::ok();
  const auto block = AllocationTable::instance().find(address);
  if (!block || block->base != address || block->space != MemorySpace::kDevice ||
      block->owner != MemoryOwner::kInfini)
    return Status(Code::kInvalidArgument, "ptr is {}, expected the start of a live block of infinirtMalloc{}",
                  address, fork_note());
  if (block->device != &stream.device())
    return Status(Code::kWrongDevice, "ptr is {}, a block of {}; the stream is of {}", address,
                  block->device->label(), stream.device().label());
  if (!LeavingBlocks::instance().add(address)) return leaving_already(address);
  const Status submitted = stream.submit([address](runtime::ExecutionContext&) {
    // First off the list, then out of the table: the address can be handed out again only after the second.
    LeavingBlocks::instance().remove(address);
    static_cast<void>(
        AllocationTable::instance().release(address, MemorySpace::kDevice, MemoryOwner::kInfini, "ptr"));
  });
  if (!submitted.is_ok()) LeavingBlocks::instance().remove(address);
  return submitted;
}

Status check_bytes(const void* address, size_t bytes, const char* argument) {
  if (bytes == 0) return Status::ok();
  if (address == nullptr) return null_pointer(argument);
  return AllocationTable::instance().check_range(address, bytes, argument);
}

}  // namespace retrograd::api::infini
