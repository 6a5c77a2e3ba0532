// SPDX-License-Identifier: Apache-2.0
// grad_weight of few x channels: output channels as the vector side, rows of (x channel, tap).
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& stem_grad_weight();

}  // namespace retrograd::engines::cpu
