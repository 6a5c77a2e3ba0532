// SPDX-License-Identifier: Apache-2.0
// Quotients of sizes as 32-bit counts.
#pragma once

#include <cstdint>

#include "base/checked.h"

namespace retrograd::kernels::cuda {

inline int ceil_of(int64_t a, int64_t b) { return static_cast<int>(ceil_div(a, b)); }

}  // namespace retrograd::kernels::cuda
