// SPDX-License-Identifier: Apache-2.0
// The first run of a process allocates nothing, like every other. One test: it needs a process of its own.
#include <gtest/gtest.h>

#include <cstdlib>

#include "allocation_counter.h"
#include "infini/client.h"

namespace retrograd::infini_test {
namespace {

TEST(FirstRun, AllocatesNothing) {
  setenv("RETROGRAD_NUM_THREADS", "1", 1);  // no threads that a sanitizer may still be starting
  const Operator pool = make(PoolCall{});
  Tensor grad_output({{2, 3, 4, 4}}), grad_input({{2, 3, 8, 8}});
  grad_output.fill([](size_t) { return 4.0; });
  std::vector<char>& workspace = room();
  infiniStatus_t status = INFINI_STATUS_INTERNAL_ERROR;
  size_t allocations = 0;
  {
    const testing::AllocationCounter counter;
    status = infiniopAvgPoolBackward(pool.get(), workspace.data(), workspace.size(), grad_input.data(),
                                     grad_output.data(), nullptr, nullptr);
    allocations = counter.count();
  }
  EXPECT_EQ(status, INFINI_STATUS_SUCCESS);
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(grad_input.values(), std::vector<double>(grad_input.count(), 1.0));
}

}  // namespace
}  // namespace retrograd::infini_test
