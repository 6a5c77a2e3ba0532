// SPDX-License-Identifier: Apache-2.0
// The program's operator new, over malloc. In a file of its own: g++ 12 takes an inlined pair for a mismatch.
#include "failing_memory.h"

#include <cstdlib>
#include <new>

namespace retrograd::test {
namespace {

thread_local bool memory_is_out = false;

}  // namespace

MemoryIsOut::MemoryIsOut() { memory_is_out = true; }
MemoryIsOut::~MemoryIsOut() { memory_is_out = false; }

}  // namespace retrograd::test

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return retrograd::test::memory_is_out ? nullptr : std::malloc(size);
}

void* operator new(size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
