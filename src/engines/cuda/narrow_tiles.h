// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight with few x channels a group, by plain multiply-adds on tiles in shared memory.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& narrow_tiles();

}  // namespace retrograd::engines::cuda
