// SPDX-License-Identifier: Apache-2.0
// Makes requests of infiniop's tensor descriptors and attribute lists.
#include "api/infini/requests.h"

#include "base/settings.h"

namespace retrograd::api::infini {
namespace {

problem::ConvNames conv_names(bool has_bias) {
  // Gradients have no descriptors of their own: what is wrong with one is wrong with the descriptor it
  // follows.
  return {.grad_output = "grad_output_desc",
          .input = "input_desc",
          .weight = "weight_desc",
          .bias = "bias_desc",
          .stride = "strides",
          .padding = "pads",
          .dilation = "dilations",
          .groups = "n",
          .grad_input = "input_desc",
          .grad_weight = "weight_desc",
          .grad_bias = has_bias ? "bias_desc" : "grad_bias"};
}

Status read_attributes(const PoolAttributes& attributes, std::optional<Width> fixed_width,
                       problem::AvgPoolRequest& request) {
  const problem::PoolNames& names = request.names;
  if (attributes.kernel_size == nullptr) return Status(Code::kNullArgument, "kernel_size is null");
  const int count = spatial_rank({&request.grad_output, &request.input});
  // One number of 32 bits, or the low half of one of 64: the same, and nothing behind it is read.
  const Width width =
      fixed_width.value_or(attribute_width({attributes.kernel_size, attributes.strides}, count, Width::k32));
  request.kernel = read_attribute(attributes.kernel_size, count, width, 1);
  request.padding = read_attribute(attributes.pads, count, width, 0);
  if (attributes.strides != nullptr) request.stride = read_attribute(attributes.strides, count, width, 1);
  if (fixed_width) return Status::ok();
  RG_CHECK(check_sizes(request.kernel, width, names.kernel));
  RG_CHECK(check_sizes(request.stride, width, names.stride));
  return check_sizes(request.padding, width, names.padding);
}

}  // namespace

Result<problem::ConvRequest> conv_request(const ConvTensors& tensors) {
  problem::ConvRequest request;
  request.names = conv_names(tensors.bias != nullptr);
  request.rules.one_dtype = true;
  request.math.winograd = settings().winograd;
  RG_TRY(request.grad_output, view_of(tensors.grad_output, request.names.grad_output));
  RG_TRY(request.input, view_of(tensors.input, request.names.input));
  RG_TRY(request.weight, view_of(tensors.weight, request.names.weight));
  request.grad_input = request.input;
  request.grad_weight = request.weight;
  if (tensors.bias != nullptr) {
    RG_TRY(const problem::TensorView bias, view_of(tensors.bias, request.names.bias));
    request.grad_bias = problem::dense_view(bias.dtype, bias.shape);
  } else if (request.grad_output.shape.rank() >= 2) {
    request.grad_bias = problem::dense_view(request.grad_output.dtype, {request.grad_output.shape[1]});
  }
  return request;
}

int read_attributes(problem::ConvRequest& request, const void* pads, const void* strides,
                    const void* dilations) {
  const int count = spatial_rank({&request.grad_output, &request.input, &request.weight});
  const Width width = attribute_width({strides, dilations}, count, Width::k32);
  request.padding = read_attribute(pads, count, width, 0);
  request.stride = read_attribute(strides, count, width, 1);
  request.dilation = read_attribute(dilations, count, width, 1);
  request.output_padding.assign(static_cast<size_t>(count), 0);
  return count;
}

Result<problem::AvgPoolRequest> pool_request(const PoolTensors& tensors, const PoolAttributes& attributes,
                                             std::optional<Width> fixed_width) {
  problem::AvgPoolRequest request;
  problem::PoolNames& names = request.names;
  names = {"grad_output_desc", "input_desc", "grad_input_desc", "kernel_size", "strides", "pads"};
  request.uncorrected_ceil_sizes = true;
  RG_TRY(request.grad_input, view_of(tensors.grad_input, names.grad_input));
  RG_TRY(request.grad_output, view_of(tensors.grad_output, names.grad_output));
  RG_TRY(request.input, view_of(tensors.input, names.input));
  RG_CHECK(read_attributes(attributes, fixed_width, request));
  return request;
}

Result<problem::AvgPoolRequest> forward_pool_request(infiniopTensorDescriptor_t output,
                                                     infiniopTensorDescriptor_t input,
                                                     const PoolAttributes& attributes) {
  problem::AvgPoolRequest request;
  request.forward = true;
  request.names = {"output_desc", "input_desc", "", "kernel_size", "strides", "pads"};
  request.uncorrected_ceil_sizes = true;
  RG_TRY(request.grad_output, view_of(output, request.names.grad_output));
  RG_TRY(request.input, view_of(input, request.names.input));
  RG_CHECK(read_attributes(attributes, std::nullopt, request));
  return request;
}

}  // namespace retrograd::api::infini
