// SPDX-License-Identifier: Apache-2.0
// Phase two of every operator.
#pragma once

#include <cstdint>

#include "aclnn/acl_meta.h"

namespace retrograd::api::acl {

// Enqueues the executor's plan and returns. Allocates nothing. `operation` is the operator whose second phase
// runs: an executor of another one is refused.
aclnnStatus execute(const char* operation, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                    aclrtStream stream) noexcept;

}  // namespace retrograd::api::acl
