// SPDX-License-Identifier: Apache-2.0
// AllocationTable: every block handed to a caller, so that a wrong free or a copy past an end is refused.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "runtime/device.h"

namespace retrograd::runtime {

enum class MemorySpace : unsigned char { kDevice, kHost };
// Which C interface handed the block out: one does not free the other's.
enum class MemoryOwner : unsigned char { kAcl, kInfini };

struct Allocation {
  const std::byte* base = nullptr;
  size_t bytes = 0;
  Device* device = nullptr;
  MemorySpace space = MemorySpace::kDevice;
  MemoryOwner owner = MemoryOwner::kAcl;
};

class AllocationTable {
 public:
  static AllocationTable& instance();

  Result<void*> allocate(Device& device, size_t bytes, MemorySpace space, MemoryOwner owner);
  // kInvalidArgument when `address` is not the start of a live block of that space and owner; `what` names
  // the argument in the message.
  Status release(void* address, MemorySpace space, MemoryOwner owner, std::string_view what = "address");
  // The block that holds `address`, if it is one of ours.
  std::optional<Allocation> find(const void* address) const;
  // Fails when [address, address + bytes) starts in a block of ours and runs past its end.
  // `what` names the argument in the message. Memory we did not hand out cannot be judged and passes.
  Status check_range(const void* address, size_t bytes, std::string_view what) const;
  // Frees every block of `owner`, once the devices have finished what was put on their streams; how many
  // there were.
  size_t release_all(MemoryOwner owner);
  size_t live_blocks(MemoryOwner owner) const;

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, Allocation> blocks_;
};

}  // namespace retrograd::runtime
