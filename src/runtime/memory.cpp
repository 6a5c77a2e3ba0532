// SPDX-License-Identifier: Apache-2.0
// The table of live blocks.
#include "runtime/memory.h"

#include <fmt/format.h>

#include <new>

#include "base/per_process.h"

namespace retrograd::runtime {
namespace {

const char* name_of(MemorySpace space) { return space == MemorySpace::kDevice ? "device" : "host"; }
const char* name_of(MemoryOwner owner) { return owner == MemoryOwner::kAcl ? "aclrt" : "infinirt"; }

void give_back(Device& device, MemorySpace space, void* address) noexcept {
  if (space == MemorySpace::kDevice) {
    device.deallocate(address);
  } else {
    device.deallocate_host(address);
  }
}

void give_back(const Allocation& block) noexcept {
  give_back(*block.device, block.space, const_cast<std::byte*>(block.base));
}

// The last block that starts at or before `address`, if it holds it. std::map orders pointers totally.
template <class Blocks>
auto block_holding(Blocks& blocks, const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  auto it = blocks.upper_bound(byte);
  if (it == blocks.begin()) return blocks.end();
  --it;
  const size_t offset = reinterpret_cast<uintptr_t>(byte) - reinterpret_cast<uintptr_t>(it->first);
  return offset < it->second.bytes ? it : blocks.end();
}

}  // namespace

AllocationTable& AllocationTable::instance() {
  // Never destroyed: callers free blocks from static destructors of their own.
  static constinit PerProcess<AllocationTable> table;
  return table.get();
}

Result<void*> AllocationTable::allocate(Device& device, size_t bytes, MemorySpace space, MemoryOwner owner) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "size is 0, expected at least 1 byte");
  RG_TRY(void* const address,
         space == MemorySpace::kDevice ? device.allocate(bytes) : device.allocate_host(bytes));
  const auto* base = static_cast<const std::byte*>(address);
  try {
    std::lock_guard lock(mutex_);
    blocks_.emplace(base, Allocation{base, bytes, &device, space, owner});
  } catch (const std::bad_alloc&) {
    give_back(device, space, address);
    return Status(Code::kOutOfMemory, "no memory to note a block of {} bytes", bytes);
  }
  return address;
}

Status AllocationTable::release(void* address, MemorySpace space, MemoryOwner owner, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument, "{} is {}, which {}", what, fmt::ptr(address), why);
  };
  Allocation block;
  {
    std::lock_guard lock(mutex_);
    const auto it = block_holding(blocks_, address);
    if (it == blocks_.end()) return refuse(fmt::format("is not the start of a live block{}", fork_note()));
    block = it->second;
    if (block.base != address)
      return refuse(fmt::format("lies {} bytes into a block of {} bytes, expected its start {}",
                                static_cast<const std::byte*>(address) - block.base, block.bytes,
                                fmt::ptr(block.base)));
    if (block.owner != owner)
      return refuse(
          fmt::format("was allocated by {}, expected a block of {}", name_of(block.owner), name_of(owner)));
    if (block.space != space)
      return refuse(fmt::format("is {} memory, expected {} memory", name_of(block.space), name_of(space)));
    blocks_.erase(it);
  }
  give_back(block);
  return Status::ok();
}

std::optional<Allocation> AllocationTable::find(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto it = block_holding(blocks_, address);
  if (it == blocks_.end()) return std::nullopt;
  return it->second;
}

Status AllocationTable::check_range(const void* address, size_t bytes, std::string_view what) const {
  const auto block = find(address);
  if (!block) return Status::ok();
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - block->base);
  const size_t room = block->bytes - offset;
  if (bytes <= room) return Status::ok();
  return Status(Code::kInvalidArgument,
                "{} needs {} bytes at {}, but its block of {} bytes ends {} bytes from there", what, bytes,
                fmt::ptr(address), block->bytes, room);
}

size_t AllocationTable::release_all(MemoryOwner owner) {
  std::map<const std::byte*, Allocation> taken;
  {
    std::lock_guard lock(mutex_);
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      const auto next = std::next(it);
      // Moving the node needs no memory, so this cannot fail halfway.
      if (it->second.owner == owner) taken.insert(blocks_.extract(it));
      it = next;
    }
  }
  // Streams of the other interface may be working on these blocks, too.
  const Device* waited_for = nullptr;
  for (const auto& [base, block] : taken) {
    if (block.device != waited_for) static_cast<void>(block.device->synchronize());
    waited_for = block.device;
  }
  for (const auto& [base, block] : taken) give_back(block);
  return taken.size();
}

size_t AllocationTable::live_blocks(MemoryOwner owner) const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [base, block] : blocks_) count += block.owner == owner ? 1 : 0;
  return count;
}

}  // namespace retrograd::runtime
