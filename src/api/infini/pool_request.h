// SPDX-License-Identifier: Apache-2.0
// What the create calls of pooling, infiniop's and ours, have in common.
#pragma once

#include "api/infini/attribute_width.h"
#include "api/infini/descriptors.h"
#include "problem/request.h"

namespace retrograd::api::infini {

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
