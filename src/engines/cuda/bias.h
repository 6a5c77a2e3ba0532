// SPDX-License-Identifier: Apache-2.0
// grad_bias of dense tensors on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& bias();

// grad_bias from sums that another step has left in the workspace.
void bias_from_sums(const problem::BiasPass& pass, const Bindings& bindings, const std::byte* workspace,
                    const ChannelSums& sums, runtime::ExecutionContext& context);

}  // namespace retrograd::engines::cuda
