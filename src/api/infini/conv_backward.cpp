// SPDX-License-Identifier: Apache-2.0
// infiniopConvBackward.
#include "infiniop/ops/conv_backward.h"

#include "api/infini/conv_request.h"
#include "api/infini/guard.h"

using namespace retrograd;
using namespace retrograd::api::infini;
using problem::Operand;

infiniStatus_t infiniopCreateConvBackwardDescriptor(infiniopHandle_t handle,
                                                    infiniopConvBackwardDescriptor_t* desc_ptr,
                                                    infiniopTensorDescriptor_t grad_output_desc,
                                                    infiniopTensorDescriptor_t input_desc,
                                                    infiniopTensorDescriptor_t weight_desc,
                                                    infiniopTensorDescriptor_t bias_desc, void* pads,
                                                    void* strides, void* dilations, size_t n) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    RG_TRY(auto request, conv_request({grad_output_desc, input_desc, weight_desc, bias_desc}));
    read_attributes(request, pads, strides, dilations);
    if (n > static_cast<size_t>(INT64_MAX))
      return Status(Code::kInvalidArgument, "n is {}, expected at most {}", n, INT64_MAX);
    request.groups = static_cast<int64_t>(n);
    return problem::Request(std::move(request));
  });
}

infiniStatus_t infiniopGetConvBackwardWorkspaceSize(infiniopConvBackwardDescriptor_t desc, size_t* size) {
  return guard(__func__, [&]() -> Status { return workspace_size(desc, Operation::kConvBackward, size); });
}

infiniStatus_t infiniopConvBackward(infiniopConvBackwardDescriptor_t desc, void* workspace,
                                    size_t workspace_size, void* grad_input, void* grad_weight,
                                    void* grad_bias, const void* grad_output, const void* input,
                                    const void* weight, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_descriptor(desc, Operation::kConvBackward));
    if (grad_output == nullptr && !descriptor->grad_output_is_empty)
      return Status(Code::kNullArgument, "grad_output is null, and every gradient needs it");
    plan::Bindings bindings;
    bindings.set(Operand::kGradInput, grad_input);
    bindings.set(Operand::kGradWeight, grad_weight);
    bindings.set(Operand::kGradBias, grad_bias);
    bindings.set(Operand::kGradOutput, grad_output);
    bindings.set(Operand::kInput, input);
    bindings.set(Operand::kWeight, weight);
    return run(*descriptor, bindings, workspace, workspace_size, stream);
  });
}

infiniStatus_t infiniopDestroyConvBackwardDescriptor(infiniopConvBackwardDescriptor_t desc) {
  return guard(__func__, [&]() -> Status { return destroy_descriptor(desc, Operation::kConvBackward); });
}
