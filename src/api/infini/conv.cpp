// SPDX-License-Identifier: Apache-2.0
// infiniopConv and infiniopConvBackward.
#include "infiniop/ops/conv.h"

#include "api/infini/guard.h"
#include "api/infini/requests.h"
#include "base/settings.h"
#include "infiniop/ops/conv_backward.h"

using namespace retrograd;
using namespace retrograd::api::infini;
using problem::Operand;

namespace {

constexpr problem::ConvNames kNames{.grad_output = "y_desc",
                                    .input = "x_desc",
                                    .weight = "w_desc",
                                    .bias = "b_desc",
                                    .stride = "strides",
                                    .padding = "pads",
                                    .dilation = "dilations"};

// As the channels say; 1 where they say nothing, which is then refused.
int64_t groups_of(const problem::ConvRequest& r) {
  if (r.input.shape.rank() < 2 || r.weight.shape.rank() < 2) return 1;
  const int64_t all = r.input.shape[1], own = r.weight.shape[1];
  return own > 0 && all >= own && all % own == 0 ? all / own : 1;
}

}  // namespace

infiniStatus_t infiniopCreateConvDescriptor(infiniopHandle_t handle, infiniopConvDescriptor_t* desc_ptr,
                                            infiniopTensorDescriptor_t y_desc,
                                            infiniopTensorDescriptor_t x_desc,
                                            infiniopTensorDescriptor_t w_desc,
                                            infiniopTensorDescriptor_t b_desc, void* pads, void* strides,
                                            void* dilations, size_t n) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    problem::ConvRequest request;
    request.forward = true;
    request.names = kNames;
    request.rules.one_dtype = true;
    request.math.winograd = settings().winograd;
    RG_TRY(request.grad_output, view_of(y_desc, kNames.grad_output));
    RG_TRY(request.input, view_of(x_desc, kNames.input));
    RG_TRY(request.weight, view_of(w_desc, kNames.weight));
    if (b_desc != nullptr) {
      RG_TRY(request.bias, view_of(b_desc, kNames.bias));
    }
    const int count = read_attributes(request, pads, strides, dilations);
    request.groups = groups_of(request);
    if (count > 0 && n != static_cast<size_t>(count) && n != static_cast<size_t>(request.groups))
      return Status(Code::kInvalidArgument,
                    "n is {}, expected {}, the spatial dimensions (or {}, the groups)", n, count,
                    request.groups);
    return problem::Request(std::move(request));
  });
}

infiniStatus_t infiniopGetConvWorkspaceSize(infiniopConvDescriptor_t desc, size_t* size) {
  return guard(__func__, [&]() -> Status { return workspace_size(desc, Operation::kConv, size); });
}

infiniStatus_t infiniopConv(infiniopConvDescriptor_t desc, void* workspace, size_t workspace_size, void* y,
                            const void* x, const void* w, const void* bias, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_descriptor(desc, Operation::kConv));
    plan::Bindings bindings;
    bindings.set(Operand::kOutput, y);
    bindings.set(Operand::kInput, x);
    bindings.set(Operand::kWeight, w);
    bindings.set(Operand::kBias, bias);
    RG_CHECK(descriptor->plan->require_results(bindings));
    return run(*descriptor, bindings, workspace, workspace_size, stream);
  });
}

infiniStatus_t infiniopDestroyConvDescriptor(infiniopConvDescriptor_t desc) {
  return guard(__func__, [&]() -> Status { return destroy_descriptor(desc, Operation::kConv); });
}

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
