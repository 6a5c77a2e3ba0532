// SPDX-License-Identifier: Apache-2.0
// grad_weight of depthwise convolutions and channel multipliers: planes are the vector side.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_grad_weight();

}  // namespace retrograd::engines::cpu
