// SPDX-License-Identifier: Apache-2.0
// infiniopAvgPool.
#include "infiniop/ops/averagepool.h"

#include "api/infini/guard.h"
#include "api/infini/pool_request.h"

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
