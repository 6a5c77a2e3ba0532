// SPDX-License-Identifier: Apache-2.0
// The counter itself: a counter that misses allocations would make "allocates nothing" mean nothing.
#include "allocation_counter.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <thread>

namespace retrograd::testing {
namespace {

// Kept from the optimiser, which may leave out an allocation it sees the end of.
void* volatile last_block = nullptr;

TEST(AllocationCounter, SeesEveryWayToAllocate) {
  const auto count_of = [](auto allocate) {
    const AllocationCounter counter;
    void* const block = allocate();
    last_block = block;
    const size_t count = counter.count();
    free(block);
    return count;
  };
  EXPECT_EQ(count_of([] { return malloc(100); }), 1u);
  EXPECT_EQ(count_of([] { return calloc(10, 10); }), 1u);
  EXPECT_EQ(count_of([] { return realloc(nullptr, 100); }), 1u);
  const size_t aligned = AllocationCounter::sees_aligned_allocations() ? 1 : 0;
  EXPECT_EQ(count_of([] { return aligned_alloc(64, 128); }), aligned);
  EXPECT_EQ(count_of([] {
              void* block = nullptr;
              return posix_memalign(&block, 64, 100) == 0 ? block : nullptr;
            }),
            aligned);
}

TEST(AllocationCounter, SeesOperatorNew) {
  const AllocationCounter counter;
  const auto value = std::make_unique<int>(1);
  last_block = value.get();
  EXPECT_EQ(counter.count(), 1u);
}

TEST(AllocationCounter, SeesOtherThreads) {
  const AllocationCounter counter;
  size_t before = 0, after = 0;
  std::thread([&] {
    before = counter.count();
    void* const block = malloc(100);
    last_block = block;
    after = counter.count();
    free(block);
  }).join();
  EXPECT_EQ(after, before + 1);
}

TEST(AllocationCounter, CountsOnlyWhileItLives) {
  {
    const AllocationCounter counter;
    EXPECT_EQ(counter.count(), 0u);
  }
  const auto between = std::make_unique<int>(1);
  last_block = between.get();
  const AllocationCounter counter;
  EXPECT_EQ(counter.count(), 0u);
}

}  // namespace
}  // namespace retrograd::testing
