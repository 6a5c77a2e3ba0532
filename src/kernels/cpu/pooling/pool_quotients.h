// SPDX-License-Identifier: Apache-2.0
// grad_output / divisor: the first half of row_pool.h, in a file of its own so that two cores compile them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/pooling/row_pool.h"

namespace retrograd::kernels::cpu {

// Rows of windows of `count` volumes, divided and with room for zeros between them: `p.pitch` windows from
// one to the next.
void divide_volumes(const PoolVolumes& p, const std::byte* in, int64_t count, float* quotients);

}  // namespace retrograd::kernels::cpu
