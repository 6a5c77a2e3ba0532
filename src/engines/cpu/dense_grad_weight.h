// SPDX-License-Identifier: Apache-2.0
// grad_weight with the channels of one operand as the vector side and those of the other as rows.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& dense_grad_weight();
// The same over pairs of BF16 numbers (bf16_cells.h).
const Candidate& bf16_grad_weight();
// And with tile registers.
const Candidate& amx_grad_weight();

}  // namespace retrograd::engines::cpu
