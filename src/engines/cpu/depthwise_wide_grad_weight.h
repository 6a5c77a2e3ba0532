// SPDX-License-Identifier: Apache-2.0
// grad_weight of depthwise convolutions in place: vectors lie along W.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_wide_grad_weight();

}  // namespace retrograd::engines::cpu
