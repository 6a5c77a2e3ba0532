// SPDX-License-Identifier: Apache-2.0
// What the two create calls of AvgPoolBackward, infiniop's and ours, have in common.
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

}  // namespace retrograd::api::infini
