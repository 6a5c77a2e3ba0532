// SPDX-License-Identifier: Apache-2.0
// Work of a known length: one convolution, timed, then repeated.
#include "busy_stream.h"

#include <algorithm>
#include <chrono>

namespace retrograd::acl_test {

BusyStream::BusyStream(aclrtStream stream) {
  ConvCall call;
  call.mask.values = {0, 1, 0};
  call.grad_output.shape = {1, 8, 30, 30};
  call.input.shape = {1, 8, 32, 32};
  call.weight.shape = call.grad_weight.shape = {8, 8, 3, 3};
  const auto block = [](TensorArg& tensor) {
    auto made = std::make_unique<DeviceBlock>(std::vector<uint8_t>(block_bytes(tensor), 0));
    tensor.data = made->get();
    return made;
  };
  grad_output_ = block(call.grad_output);
  input_ = block(call.input);
  weight_ = block(call.weight);
  grad_weight_ = block(call.grad_weight);
  plan_ = call.phase_one();
  EXPECT_EQ(plan_.status, ACLNN_SUCCESS) << plan_.message;
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(plan_.executor), ACLNN_SUCCESS);
  workspace_ = std::make_unique<DeviceBlock>(static_cast<size_t>(plan_.workspace_size));

  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  occupy(stream);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  const double one_run = Seconds(std::chrono::steady_clock::now() - start).count();
  runs_ = static_cast<int>(std::clamp(0.2 / one_run, 1.0, 800.0));  // fewer than the tasks a stream may hold
}

BusyStream::~BusyStream() { EXPECT_EQ(aclDestroyAclOpExecutor(plan_.executor), ACLNN_SUCCESS); }

void BusyStream::occupy(aclrtStream stream) const {
  for (int i = 0; i < runs_; ++i) {
    EXPECT_EQ(aclnnConvolutionBackward(workspace_->get(), plan_.workspace_size, plan_.executor, stream),
              ACLNN_SUCCESS);
  }
}

}  // namespace retrograd::acl_test
