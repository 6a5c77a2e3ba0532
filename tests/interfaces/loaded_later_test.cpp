// SPDX-License-Identifier: Apache-2.0
// The library loaded with dlopen, as Python's ctypes does: the C library gives it no room on a thread before
// the thread's first use, unless it asks for that when it is loaded.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "failing_allocations.h"
#include "infinirt.h"

namespace retrograd::test {
namespace {

using retrograd::testing::FailingAllocations;
using retrograd::testing::Fault;

TEST(LoadedLater, AThreadsFirstFailureNeedsNoMemory) {
  void* const library = dlopen(RETROGRAD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto allocate = reinterpret_cast<decltype(&infinirtMalloc)>(dlsym(library, "infinirtMalloc"));
  const auto free_block = reinterpret_cast<decltype(&infinirtFree)>(dlsym(library, "infinirtFree"));
  const auto last_error = reinterpret_cast<const char* (*)()>(dlsym(library, "retrogradGetLastError"));
  ASSERT_TRUE(allocate != nullptr && free_block != nullptr && last_error != nullptr);
  void* block = nullptr;
  ASSERT_EQ(allocate(&block, 64), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(free_block(block), INFINI_STATUS_SUCCESS);
  int status = -1;
  std::string message;
  std::thread([&] {
    {
      const FailingAllocations failing(Fault::kAllAllocations, 1);
      status = allocate(&block, 64);
    }
    message = last_error();
  }).join();
  EXPECT_EQ(status, INFINI_STATUS_INTERNAL_ERROR);
  EXPECT_NE(message.find("infinirtMalloc: "), std::string::npos) << message;
}

}  // namespace
}  // namespace retrograd::test
