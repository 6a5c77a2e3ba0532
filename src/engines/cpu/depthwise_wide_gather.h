// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of depthwise convolutions in place: vectors lie along W.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_wide_gather();

}  // namespace retrograd::engines::cpu
