// SPDX-License-Identifier: Apache-2.0
// Every function of exports.txt as a row: what must be there before it is called, the call, and what clears
// up behind it. One process makes one row at a time, so what rows work on are variables of their files.
#pragma once

#include <cstdint>
#include <span>

namespace retrograd::test {

// What a call ends with when there is no memory: 207001, 361001, 1 or 10. A create call that returns null is
// given the number that its message begins with.
inline constexpr int kAclOutOfMemory = 207001, kAclnnOutOfMemory = 361001, kInfiniOutOfMemory = 1,
                     kRetrogradOutOfMemory = 10;

struct ExportedCall {
  const char* name;
  int out_of_memory;
  void (*setup)();
  // Its code. What it makes goes to `written`, which a failing call must leave alone.
  int (*call)();
  void (*undo)();  // behind a call that succeeded; null: nothing to undo
  void (*teardown)();
  int expected = 0;  // for rows about refusals
};

std::span<const ExportedCall> exported_acl_calls();
std::span<const ExportedCall> exported_infini_calls();
std::span<const ExportedCall> exported_retrograd_calls();

struct Written {
  static constexpr uint64_t kUntouched = 0x5AFE5AFE5AFE5AFE;
  void* pointer = reinterpret_cast<void*>(uintptr_t{kUntouched});
  uint64_t number = kUntouched;
  bool untouched() const {
    return reinterpret_cast<uintptr_t>(pointer) == kUntouched && number == kUntouched;
  }
};
inline Written written;

// Ends the process with exit code 3 and the text unless `good`: setups must succeed.
void require(bool good, const char* what);

}  // namespace retrograd::test
