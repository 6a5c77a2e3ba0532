// SPDX-License-Identifier: Apache-2.0
// What the create calls of convolutions, infiniop's and ours, have in common.
#pragma once

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

}  // namespace retrograd::api::infini
