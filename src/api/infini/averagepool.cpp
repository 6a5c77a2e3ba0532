// SPDX-License-Identifier: Apache-2.0
// infiniopAvgPool and infiniopAvgPoolBackward.
#include "infiniop/ops/averagepool.h"

#include "api/infini/guard.h"
#include "api/infini/requests.h"
#include "infiniop/ops/averagepool_backward.h"

using namespace retrograd;
using namespace retrograd::api::infini;
using problem::Operand;

infiniStatus_t infiniopCreateAvgPoolDescriptor(infiniopHandle_t handle, infiniopAvgPoolDescriptor_t* desc_ptr,
                                               infiniopTensorDescriptor_t output_desc,
                                               infiniopTensorDescriptor_t input_desc, void* kernel_size,
                                               void* strides, void* pads, bool ceil_mode) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    RG_TRY(auto request, forward_pool_request(output_desc, input_desc, {kernel_size, strides, pads}));
    request.ceil_mode = ceil_mode;
    return problem::Request(std::move(request));
  });
}

infiniStatus_t infiniopGetAvgPoolWorkspaceSize(infiniopAvgPoolDescriptor_t desc, size_t* size) {
  return guard(__func__, [&]() -> Status { return workspace_size(desc, Operation::kAvgPool, size); });
}

infiniStatus_t infiniopAvgPool(infiniopAvgPoolDescriptor_t desc, void* workspace, size_t workspace_size,
                               void* output, const void* input, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_descriptor(desc, Operation::kAvgPool));
    plan::Bindings bindings;
    bindings.set(Operand::kOutput, output);
    bindings.set(Operand::kInput, input);
    RG_CHECK(descriptor->plan->require_results(bindings));
    return run(*descriptor, bindings, workspace, workspace_size, stream);
  });
}

infiniStatus_t infiniopDestroyAvgPoolDescriptor(infiniopAvgPoolDescriptor_t desc) {
  return guard(__func__, [&]() -> Status { return destroy_descriptor(desc, Operation::kAvgPool); });
}

infiniStatus_t infiniopCreateAvgPoolBackwardDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_input_desc, infiniopTensorDescriptor_t grad_output_desc,
    infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides, void* pads, bool ceil_mode) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    RG_TRY(auto request,
           pool_request({grad_input_desc, grad_output_desc, input_desc}, {kernel_size, strides, pads}));
    request.ceil_mode = ceil_mode;
    return problem::Request(std::move(request));
  });
}

infiniStatus_t infiniopGetAvgPoolBackwardWorkspaceSize(infiniopAvgPoolBackwardDescriptor_t desc,
                                                       size_t* size) {
  return guard(__func__, [&]() -> Status { return workspace_size(desc, Operation::kAvgPoolBackward, size); });
}

infiniStatus_t infiniopAvgPoolBackward(infiniopAvgPoolBackwardDescriptor_t desc, void* workspace,
                                       size_t workspace_size, void* grad_input, const void* grad_output,
                                       const void* /* input */, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_descriptor(desc, Operation::kAvgPoolBackward));
    if (!descriptor->grad_output_is_empty)
      for (auto [address, name] : {std::pair{static_cast<const void*>(grad_input), "grad_input"},
                                   std::pair{grad_output, "grad_output"}})
        if (address == nullptr) return Status(Code::kNullArgument, "{} is null", name);
    plan::Bindings bindings;
    bindings.set(Operand::kGradInput, grad_input);
    bindings.set(Operand::kGradOutput, grad_output);
    return run(*descriptor, bindings, workspace, workspace_size, stream);
  });
}

infiniStatus_t infiniopDestroyAvgPoolBackwardDescriptor(infiniopAvgPoolBackwardDescriptor_t desc) {
  return guard(__func__, [&]() -> Status { return destroy_descriptor(desc, Operation::kAvgPoolBackward); });
}
