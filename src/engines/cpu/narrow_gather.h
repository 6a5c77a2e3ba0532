// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input with positions as the vector side: depthwise, few channels a group, and stems.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& narrow_gather();

}  // namespace retrograd::engines::cpu
