// SPDX-License-Identifier: Apache-2.0
// AllocationCounter: how often the process asked for heap memory, on any thread, while one of these lives.
//
// A test program that wants it adds tests/allocation_counter.cpp to its sources. One counter at a time.
// A sanitizer allocates on a thread that is starting: submit to a new stream and synchronise it before
// counting.
#pragma once

#include <cstddef>

namespace retrograd::testing {

class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  // Calls of malloc and its kin since construction; operator new is one of them.
  size_t count() const;
  // False where the hooks leave out aligned_alloc and posix_memalign: ThreadSanitizer.
  static bool sees_aligned_allocations();
};

}  // namespace retrograd::testing
