// SPDX-License-Identifier: Apache-2.0
// Makes a pooling request of infiniop's tensor descriptors and attribute lists.
#include "api/infini/pool_request.h"

namespace retrograd::api::infini {

Result<problem::AvgPoolRequest> pool_request(const PoolTensors& tensors, const PoolAttributes& attributes,
                                             std::optional<Width> fixed_width) {
  problem::AvgPoolRequest request;
  problem::PoolNames& names = request.names;
  names = {"grad_output_desc", "input_desc", "grad_input_desc", "kernel_size", "strides", "pads"};
  request.uncorrected_ceil_sizes = true;
  RG_TRY(request.grad_input, view_of(tensors.grad_input, names.grad_input));
  RG_TRY(request.grad_output, view_of(tensors.grad_output, names.grad_output));
  RG_TRY(request.input, view_of(tensors.input, names.input));
  if (attributes.kernel_size == nullptr) return Status(Code::kNullArgument, "kernel_size is null");

  const int count = spatial_rank({&request.grad_output, &request.input});
  // One number of 32 bits, or the low half of one of 64: the same, and nothing behind it is read.
  const Width width =
      fixed_width.value_or(attribute_width({attributes.kernel_size, attributes.strides}, count, Width::k32));
  request.kernel = read_attribute(attributes.kernel_size, count, width, 1);
  request.padding = read_attribute(attributes.pads, count, width, 0);
  if (attributes.strides != nullptr) request.stride = read_attribute(attributes.strides, count, width, 1);
  if (!fixed_width) {
    RG_CHECK(check_sizes(request.kernel, width, names.kernel));
    RG_CHECK(check_sizes(request.stride, width, names.stride));
    RG_CHECK(check_sizes(request.padding, width, names.padding));
  }
  return request;
}

}  // namespace retrograd::api::infini
