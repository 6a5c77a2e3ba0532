// SPDX-License-Identifier: Apache-2.0
// run(): both phases of a call, with device memory of its own, to the values of its outputs.
#pragma once

#include "client.h"

namespace retrograd::acl_test {

using Values = std::vector<float>;

// A block of aclrtMalloc with `bytes` in it.
class DeviceBlock {
 public:
  explicit DeviceBlock(const std::vector<uint8_t>& bytes);
  explicit DeviceBlock(size_t bytes) : DeviceBlock(std::vector<uint8_t>(bytes, 0xAA)) {}
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock();
  void* get() const { return address_; }
  std::vector<uint8_t> bytes() const;

 private:
  void* address_ = nullptr;  // null for no bytes
  size_t size_ = 0;
};

// Elements a tensor argument's block needs: its storage where it says one, its shape otherwise.
size_t block_bytes(const TensorArg& arg);

// Element `index` of the view, counted row-major, from the start of its block.
int64_t element_offset(const TensorArg& arg, int64_t index);

// The block of an argument, holding `values` in the places the view has.
std::vector<uint8_t> scatter(const TensorArg& arg, const Values& values);
Values gather(const TensorArg& arg, const std::vector<uint8_t>& bytes);

// The outputs, in the order of the prototype. They hold garbage before the call; inputs without values hold
// zeros.
template <class Call>
std::vector<Values> run(Call call, const std::vector<Values>& inputs, aclrtStream stream) {
  std::vector<std::unique_ptr<DeviceBlock>> blocks, results;
  const auto in = call.inputs();
  for (size_t i = 0; i < in.size(); ++i) {
    const auto bytes =
        i < inputs.size() ? scatter(*in[i], inputs[i]) : std::vector<uint8_t>(block_bytes(*in[i]));
    blocks.push_back(std::make_unique<DeviceBlock>(bytes));
    in[i]->data = blocks.back()->get();
  }
  for (TensorArg* out : call.outputs()) {
    results.push_back(std::make_unique<DeviceBlock>(block_bytes(*out)));
    out->data = results.back()->get();
  }
  const PhaseOne plan = call.phase_one();
  EXPECT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
  if (plan.status != ACLNN_SUCCESS) return {};
  const DeviceBlock workspace(static_cast<size_t>(plan.workspace_size));
  EXPECT_EQ(Call::kRun(workspace.get(), plan.workspace_size, plan.executor, stream), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  std::vector<Values> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(gather(*call.outputs()[i], results[i]->bytes()));
  return values;
}

}  // namespace retrograd::acl_test
