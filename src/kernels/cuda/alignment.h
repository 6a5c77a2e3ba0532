// SPDX-License-Identifier: Apache-2.0
// Which vectors fit at an address.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace retrograd::kernels::cuda {

inline bool is_aligned(const void* address, size_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// The largest power of two, 16 at most, that all the addresses are multiples of.
inline int alignment_of(std::initializer_list<const void*> addresses) {
  uintptr_t bits = 16;
  for (const void* address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return 1 << std::countr_zero(bits);
}

}  // namespace retrograd::kernels::cuda
