// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input with channels as the vector side: packed weights, strips, tiles.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& dense_gather();
// The same over pairs of BF16 numbers (bf16_cells.h).
const Candidate& bf16_gather();
// And with tile registers.
const Candidate& amx_gather();

}  // namespace retrograd::engines::cpu
