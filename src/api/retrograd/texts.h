// SPDX-License-Identifier: Apache-2.0
// Texts that go into a caller's memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/status.h"

namespace retrograd::api::own {

// Before anything is worked out that would have no place to go.
inline Status check_buffer(const char* text, size_t capacity) {
  if (text != nullptr || capacity == 0) return Status::ok();
  return {Code::kNullArgument, "text is null, expected memory for it, or a capacity of 0"};
}

// As much of `whole` as fits with a 0 behind it.
inline Status hand_out(std::string_view whole, char* text, size_t capacity, size_t* length) {
  if (length != nullptr) *length = whole.size();
  if (capacity == 0) return Status::ok();
  const size_t kept = std::min(whole.size(), capacity - 1);
  std::memcpy(text, whole.data(), kept);
  text[kept] = 0;
  return Status::ok();
}

}  // namespace retrograd::api::own
