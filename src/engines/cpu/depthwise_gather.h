// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of depthwise convolutions and channel multipliers: planes are the vector side.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_gather();

}  // namespace retrograd::engines::cpu
