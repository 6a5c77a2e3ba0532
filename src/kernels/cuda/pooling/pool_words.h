// SPDX-License-Identifier: Apache-2.0
// 16 bytes of a tensor as the registers see them. Elements of 16 bits would be taken out of their registers
// as soon as they are there, and each load be waited for before the next one begins.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/host_device.h"

namespace retrograd::kernels::cuda {

struct alignas(16) PoolWords {
  uint32_t values[4];
};

}  // namespace retrograd::kernels::cuda
