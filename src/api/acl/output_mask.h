// SPDX-License-Identifier: Apache-2.0
// outputMask and biasSizes of aclnnConvolutionBackward: which gradients are wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "aclnn/acl_meta.h"
#include "api/acl/phase_one.h"
#include "base/status.h"
#include "problem/request.h"

namespace retrograd::api::acl {

struct OutputMask {
  bool grad_input = false;
  bool grad_weight = false;
  bool grad_bias = false;
  std::vector<int64_t> bias_sizes;  // read when the bias gradient is wanted
};

struct MaskedArguments {
  const aclTensor *grad_input, *grad_weight, *grad_bias;
  const aclIntArray* bias_sizes;
};

// Three entries; what they ask for is not null. What they leave out is not looked at.
Result<OutputMask> read_output_mask(const aclBoolArray* mask, const MaskedArguments& arguments);

// Puts the wanted gradients into the request.
Status read_masked_outputs(PhaseOne& call, const OutputMask& mask, const MaskedArguments& arguments,
                           problem::ConvRequest& request);

// The sizes are not needed, so wrong ones are worth a warning only.
void judge_bias_sizes(const OutputMask& mask, int64_t channels, const char* operation) noexcept;

}  // namespace retrograd::api::acl
