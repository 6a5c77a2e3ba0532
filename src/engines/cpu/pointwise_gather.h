// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of kernels with one tap: a product of matrices with positions as the vector side.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& pointwise_gather();

}  // namespace retrograd::engines::cpu
