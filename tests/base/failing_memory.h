// SPDX-License-Identifier: Apache-2.0
// Makes the allocations of one thread fail, in a program that links failing_memory.cpp.
#pragma once

namespace retrograd::test {

// While one lives, operator new fails on its thread.
class MemoryIsOut {
 public:
  MemoryIsOut();
  ~MemoryIsOut();
  MemoryIsOut(const MemoryIsOut&) = delete;
  MemoryIsOut& operator=(const MemoryIsOut&) = delete;
};

}  // namespace retrograd::test
