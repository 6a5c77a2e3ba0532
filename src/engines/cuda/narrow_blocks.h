// SPDX-License-Identifier: Apache-2.0
// grad_input and grad_weight of narrow groups of 16-bit types on tensor cores.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& narrow_blocks();

}  // namespace retrograd::engines::cuda
