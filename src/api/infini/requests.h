// SPDX-License-Identifier: Apache-2.0
// What the create calls of an operator, infiniop's and ours, have in common.
#pragma once

#include "api/infini/attribute_width.h"
#include "api/infini/descriptors.h"
#include "problem/request.h"

namespace retrograd::api::infini {

struct ConvTensors {
  infiniopTensorDescriptor_t grad_output, input, weight, bias;
};

// The tensors of a request, all three gradients asked for. Attributes are left to the caller.
Result<problem::ConvRequest> conv_request(const ConvTensors& tensors);
// pads, strides and dilations of infiniop's own create calls, whose width is found out. Returns the spatial
// rank.
int read_attributes(problem::ConvRequest& request, const void* pads, const void* strides,
                    const void* dilations);

struct PoolTensors {
  infiniopTensorDescriptor_t grad_input, grad_output, input;
};
struct PoolAttributes {
  const void *kernel_size, *strides, *pads;
};

// `fixed_width` is for a caller who knows how wide the attributes are.
Result<problem::AvgPoolRequest> pool_request(const PoolTensors& tensors, const PoolAttributes& attributes,
                                             std::optional<Width> fixed_width = std::nullopt);

Result<problem::AvgPoolRequest> forward_pool_request(infiniopTensorDescriptor_t output,
                                                     infiniopTensorDescriptor_t input,
                                                     const PoolAttributes& attributes);

}  // namespace retrograd::api::infini
