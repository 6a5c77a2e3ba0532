// SPDX-License-Identifier: Apache-2.0
// Copies and fills in the memory of the host, for the CPU device and its streams.
#pragma once

#include <cstddef>
#include <cstring>

#include "base/status.h"

namespace retrograd::runtime {

// Null is legal where no byte is touched.
inline Status check_fill(const void* destination, size_t bytes) {
  if (bytes != 0 && destination == nullptr) return Status(Code::kNullArgument, "the destination is null");
  return Status::ok();
}

inline Status check_copy(const void* destination, const void* source, size_t bytes) {
  if (bytes != 0 && source == nullptr) return Status(Code::kNullArgument, "the source is null");
  return check_fill(destination, bytes);
}

// Ranges may overlap: callers do hand in such, and the bits should not depend on the C library.
inline void copy_bytes(void* destination, const void* source, size_t bytes) {
  if (bytes != 0) std::memmove(destination, source, bytes);
}

inline void fill_bytes(void* destination, int value, size_t bytes) {
  if (bytes != 0) std::memset(destination, value, bytes);
}

}  // namespace retrograd::runtime
