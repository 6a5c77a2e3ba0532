// SPDX-License-Identifier: Apache-2.0
// FailingAllocations: while one lives, the n-th request of the process for memory or for a thread is refused.
//
// A test program that wants it adds tests/failing_allocations.cpp to its sources, and not
// tests/allocation_counter.cpp, which takes over the same functions. One at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace retrograd::testing {

enum class Fault {
  kOneAllocation,   // the n-th alone: the failure can be told about as usual
  kAllAllocations,  // the n-th and all after it: nothing is left to tell about it
  kOneThread,       // the n-th pthread_create alone answers EAGAIN
  kAllThreads,      // the n-th and all after it
};

class FailingAllocations {
 public:
  // Counted from 1, on whichever thread.
  FailingAllocations(Fault fault, size_t nth);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  // Whether anything was refused.
  bool happened() const;
};

// Who asked for memory: a number for each request, made of its innermost callers.
struct RequestSites {
  std::atomic<size_t> count{0};
  std::array<uint64_t, 5000> callers;
};
// Requests that a FailingAllocations counts are noted there from now on.
void note_requests(RequestSites& sites);

// Blocks of memory that were handed out and not given back, by the whole process.
long live_blocks();
// True where malloc, calloc, realloc, aligned_alloc and posix_memalign fail too; with a sanitizer, whose
// allocator cannot be stood in front of, only operator new does.
bool replaces_malloc();

}  // namespace retrograd::testing
