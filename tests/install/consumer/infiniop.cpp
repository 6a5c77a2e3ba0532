// SPDX-License-Identifier: Apache-2.0
// A user of the infiniop interface in C++11, working on host memory of its own and the null stream.
#include "infiniop.h"

#include <cstdio>
#include <vector>

#include "expected.h"
#include "infinirt.h"
#include "retrograd/retrograd.h"

namespace {

int failures = 0;

void must(const char* what, infiniStatus_t status) {
  if (status == INFINI_STATUS_SUCCESS) return;
  std::printf("%s: %d %s\n", what, static_cast<int>(status), retrogradGetLastError());
  ++failures;
}

class TensorDescriptor {
 public:
  explicit TensorDescriptor(const std::vector<size_t>& shape) {
    must("infiniopCreateTensorDescriptor",
         infiniopCreateTensorDescriptor(&descriptor_, shape.size(), shape.data(), nullptr, INFINI_DTYPE_F32));
  }
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;
  ~TensorDescriptor() {
    must("infiniopDestroyTensorDescriptor", infiniopDestroyTensorDescriptor(descriptor_));
  }
  infiniopTensorDescriptor_t get() const { return descriptor_; }

 private:
  infiniopTensorDescriptor_t descriptor_ = nullptr;
};

void compute(infiniopConvBackwardDescriptor_t conv) {
  const std::vector<float> grad_output(4, 1.0f), input(9, 1.0f), weight(4, 1.0f);
  std::vector<float> grad_input(9), grad_weight(4), grad_bias(1);
  size_t bytes = 0;
  must("infiniopGetConvBackwardWorkspaceSize", infiniopGetConvBackwardWorkspaceSize(conv, &bytes));
  std::vector<char> workspace(bytes);
  must("infiniopConvBackward",
       infiniopConvBackward(conv, workspace.data(), bytes, grad_input.data(), grad_weight.data(),
                            grad_bias.data(), grad_output.data(), input.data(), weight.data(), nullptr));
  failures += compare("grad_input", grad_input.data(), kGradInput, 9);
  failures += compare("grad_weight", grad_weight.data(), kGradWeight, 4);
  failures += compare("grad_bias", grad_bias.data(), kGradBias, 1);
}

}  // namespace

int main() {
  infiniopHandle_t handle = nullptr;
  infiniopConvBackwardDescriptor_t conv = nullptr;
  std::vector<int64_t> pads(2, 0), strides(2, 1), dilations(2, 1);
  must("infiniopCreateHandle", infiniopCreateHandle(&handle));
  {
    const TensorDescriptor grad_output({1, 1, 2, 2}), input({1, 1, 3, 3}), weight({1, 1, 2, 2}), bias({1});
    must("infiniopCreateConvBackwardDescriptor",
         infiniopCreateConvBackwardDescriptor(handle, &conv, grad_output.get(), input.get(), weight.get(),
                                              bias.get(), pads.data(), strides.data(), dilations.data(), 1));
  }
  if (failures == 0) compute(conv);
  must("infiniopDestroyConvBackwardDescriptor", infiniopDestroyConvBackwardDescriptor(conv));
  must("infiniopDestroyHandle", infiniopDestroyHandle(handle));
  if (failures == 0) std::printf("right\n");
  return failures != 0;
}
