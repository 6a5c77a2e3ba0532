// SPDX-License-Identifier: Apache-2.0
// The first phase two of a process allocates nothing, like every other. One test: it needs a process of its
// own, whose memory is the caller's and not of aclrtMalloc.
#include <cstdlib>

#include "allocation_counter.h"
#include "run_call.h"

namespace retrograd::acl_test {
namespace {

TEST(FirstCall, AllocatesNothing) {
  setenv("RETROGRAD_NUM_THREADS", "1", 1);  // no threads that a sanitizer may still be starting
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  // The stream's thread has started when it has recorded an event, which asks for no memory.
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ConvCall call;
  std::vector<std::vector<uint8_t>> blocks;
  for (TensorArg* tensor :
       {&call.grad_output, &call.input, &call.weight, &call.grad_input, &call.grad_weight, &call.grad_bias}) {
    blocks.emplace_back(block_bytes(*tensor));
    tensor->data = blocks.back().data();
  }
  const PhaseOne plan = call.phase_one();
  ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
  std::vector<uint8_t> workspace(static_cast<size_t>(plan.workspace_size) + 1);
  aclnnStatus status = -1;
  size_t allocations = 0;
  {
    const testing::AllocationCounter counter;
    status = aclnnConvolutionBackward(workspace.data(), plan.workspace_size, plan.executor, stream);
    allocations = counter.count();
  }
  EXPECT_EQ(status, ACLNN_SUCCESS);
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
}  // namespace retrograd::acl_test
