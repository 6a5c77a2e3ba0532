// SPDX-License-Identifier: Apache-2.0
// Makes a convolution request of infiniop's tensor descriptors.
#include "api/infini/conv_request.h"

#include "api/infini/attribute_width.h"
#include "base/settings.h"

namespace retrograd::api::infini {
namespace {

problem::ConvNames names(bool has_bias) {
  problem::ConvNames names;
  names.grad_output = "grad_output_desc";
  names.input = "input_desc";
  names.weight = "weight_desc";
  names.bias = "bias_desc";
  names.stride = "strides";
  names.padding = "pads";
  names.dilation = "dilations";
  names.groups = "n";
  // Gradients have no descriptors of their own: what is wrong with one is wrong with the descriptor it
  // follows.
  names.grad_input = "input_desc";
  names.grad_weight = "weight_desc";
  names.grad_bias = has_bias ? "bias_desc" : "grad_bias";
  return names;
}

}  // namespace

Result<problem::ConvRequest> conv_request(const ConvTensors& tensors) {
  problem::ConvRequest request;
  request.names = names(tensors.bias != nullptr);
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

}  // namespace retrograd::api::infini
