// SPDX-License-Identifier: Apache-2.0
// grad_weight of one-dimensional depthwise convolutions: vectors lie along the rows.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_line_grad_weight();

}  // namespace retrograd::engines::cpu
