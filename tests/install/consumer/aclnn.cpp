// SPDX-License-Identifier: Apache-2.0
// A user of the aclnn interface in C++11: the destroy functions serve as deleters, the enumerators are
// qualified.
#include <cstdio>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "expected.h"

namespace {

int failures = 0;

void must(const char* what, int status) {
  if (status == ACL_SUCCESS) return;
  const char* why = aclGetRecentErrMsg();
  std::printf("%s: %d %s\n", what, status, why != nullptr ? why : "without a message");
  ++failures;
}

using Memory = std::unique_ptr<void, aclError (*)(void*)>;
using Tensor = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)>;
using IntArray = std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray*)>;
using BoolArray = std::unique_ptr<aclBoolArray, aclnnStatus (*)(const aclBoolArray*)>;

// A tensor of ones on the device.
struct Operand {
  Operand(const std::vector<int64_t>& shape, aclFormat format)
      : memory(nullptr, aclrtFree), tensor(nullptr, aclDestroyTensor) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    const std::vector<float> ones(count, 1.0f);
    const size_t bytes = count * sizeof(float);
    void* address = nullptr;
    must("aclrtMalloc", aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    memory.reset(address);
    must("aclrtMemcpy", aclrtMemcpy(address, bytes, ones.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    tensor.reset(aclCreateTensor(shape.data(), shape.size(), aclDataType::ACL_FLOAT, nullptr, 0, format,
                                 shape.data(), shape.size(), address));
  }
  int check(const char* name, const float* expected, int count) const {
    std::vector<float> host(static_cast<size_t>(count));
    const size_t bytes = host.size() * sizeof(float);
    must("aclrtMemcpy", aclrtMemcpy(host.data(), bytes, memory.get(), bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return compare(name, host.data(), expected, count);
  }
  Memory memory;
  Tensor tensor;
};

IntArray int_array(const std::vector<int64_t>& values) {
  return IntArray(aclCreateIntArray(values.data(), values.size()), aclDestroyIntArray);
}

void compute(aclrtStream stream) {
  const Operand grad_output({1, 1, 2, 2}, aclFormat::ACL_FORMAT_NCHW),
      input({1, 1, 3, 3}, aclFormat::ACL_FORMAT_NCHW), weight({1, 1, 2, 2}, aclFormat::ACL_FORMAT_NCHW),
      grad_input({1, 1, 3, 3}, aclFormat::ACL_FORMAT_NCHW),
      grad_weight({1, 1, 2, 2}, aclFormat::ACL_FORMAT_NCHW), grad_bias({1}, aclFormat::ACL_FORMAT_ND);
  const IntArray ones = int_array({1, 1}), zeros = int_array({0, 0}), bias = int_array({1});
  const bool all[] = {true, true, true};
  const BoolArray mask(aclCreateBoolArray(all, 3), aclDestroyBoolArray);

  uint64_t bytes = 0;
  aclOpExecutor* executor;
  const aclnnStatus planned = aclnnConvolutionBackwardGetWorkspaceSize(
      grad_output.tensor.get(), input.tensor.get(), weight.tensor.get(), bias.get(), ones.get(), zeros.get(),
      ones.get(), false, zeros.get(), 1, mask.get(), 1, grad_input.tensor.get(), grad_weight.tensor.get(),
      grad_bias.tensor.get(), &bytes, &executor);
  must("aclnnConvolutionBackwardGetWorkspaceSize", planned);
  if (planned != 0) return;
  Memory workspace(nullptr, aclrtFree);
  if (bytes > 0) {
    void* address = nullptr;
    must("aclrtMalloc", aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    workspace.reset(address);
  }
  must("aclnnConvolutionBackward", aclnnConvolutionBackward(workspace.get(), bytes, executor, stream));
  must("aclrtSynchronizeStream", aclrtSynchronizeStream(stream));
  failures += grad_input.check("grad_input", kGradInput, 9);
  failures += grad_weight.check("grad_weight", kGradWeight, 4);
  failures += grad_bias.check("grad_bias", kGradBias, 1);
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  must("aclInit", aclInit(nullptr));
  must("aclrtSetDevice", aclrtSetDevice(0));
  must("aclrtCreateStream", aclrtCreateStream(&stream));
  if (failures == 0) compute(stream);
  must("aclrtDestroyStream", aclrtDestroyStream(stream));
  must("aclrtResetDevice", aclrtResetDevice(0));
  must("aclFinalize", aclFinalize());
  if (failures == 0) std::printf("right\n");
  return failures != 0;
}
