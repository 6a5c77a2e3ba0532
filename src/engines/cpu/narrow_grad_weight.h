// SPDX-License-Identifier: Apache-2.0
// grad_weight as dot products along rows: depthwise and few channels a group.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& narrow_grad_weight();

}  // namespace retrograd::engines::cpu
