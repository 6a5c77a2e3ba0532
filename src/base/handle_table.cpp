// SPDX-License-Identifier: Apache-2.0
// Makes handles that are numbers, not addresses, and are never reused.
#include "base/handle_table.h"

#include <atomic>

namespace retrograd {
namespace {

// No user address on x86-64 (47 or 56 bits), nor on aarch64 (48 or 52 bits, the top byte being ignored there:
// the 0xc1 below it still lies outside). Following one by mistake faults at once.
constexpr uint64_t kFirstHandle = 0x0ac1'0000'0000'0000;
// 16 apart, so that a handle offset by a few bytes is no other handle, and looks aligned like an allocation.
constexpr uint64_t kSpacing = 16;

std::atomic<uint64_t> next_handle{kFirstHandle};

}  // namespace

void* mint_handle() {
  static_assert(sizeof(void*) == sizeof(uint64_t));
  const uint64_t handle = next_handle.fetch_add(kSpacing, std::memory_order_relaxed);
  return reinterpret_cast<void*>(static_cast<uintptr_t>(handle));  // NOLINT(performance-no-int-to-ptr)
}

bool is_minted_handle(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle) >> 48 == kFirstHandle >> 48;
}

}  // namespace retrograd
