// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of one-dimensional depthwise convolutions: vectors lie along the rows.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_line_gather();

}  // namespace retrograd::engines::cpu
