// SPDX-License-Identifier: Apache-2.0
// What cubeMathType does for a problem, in words.
#pragma once

#include <string>

#include "problem/problem.h"

namespace retrograd::tools {

// Empty for pooling, which has none.
std::string effect_of_math_mode(const problem::Problem& problem);

}  // namespace retrograd::tools
