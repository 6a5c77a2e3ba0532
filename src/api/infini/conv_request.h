// SPDX-License-Identifier: Apache-2.0
// What the two create calls of ConvBackward, infiniop's and ours, have in common.
#pragma once

#include "api/infini/descriptors.h"
#include "problem/request.h"

namespace retrograd::api::infini {

struct ConvTensors {
  infiniopTensorDescriptor_t grad_output, input, weight, bias;
};

// The tensors of a request, all three gradients asked for. Attributes are left to the caller.
Result<problem::ConvRequest> conv_request(const ConvTensors& tensors);

}  // namespace retrograd::api::infini
