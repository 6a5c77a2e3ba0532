// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that nobody may touch: a read or write beyond one of its ends stops the program.
#pragma once

#include <cstddef>
#include <span>

namespace retrograd::test {

enum class Against : unsigned char {
  kStart,
  kEnd
};  // the end of the memory that lies against its page exactly

class GuardedMemory {
 public:
  GuardedMemory(size_t bytes, Against against);
  // A copy of `contents`.
  GuardedMemory(std::span<const std::byte> contents, Against against);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() { return bytes_.data(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  // From here on a write stops the program as well.
  void forbid_writes();

 private:
  std::span<std::byte> mapping_;  // both guard pages included
  std::span<std::byte> bytes_;
};

}  // namespace retrograd::test
