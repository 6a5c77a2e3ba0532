// SPDX-License-Identifier: Apache-2.0
// Sizes as 32-bit counts: quotients, and which numbers are below one.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "base/host_device.h"

namespace retrograd::kernels::cuda {

inline int ceil_of(int64_t a, int64_t b) { return static_cast<int>(ceil_div(a, b)); }

RG_DEVICE inline bool is_inside(int number, int count) {
  return static_cast<unsigned>(number) < static_cast<unsigned>(count);
}

}  // namespace retrograd::kernels::cuda
