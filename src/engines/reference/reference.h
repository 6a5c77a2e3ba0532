// SPDX-License-Identifier: Apache-2.0
// The reference engine: plain loops, double sums, any strides, any type, every pass. It refuses nothing that
// is valid, and every other engine is judged by it.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::reference {

const Candidate& candidate();

}  // namespace retrograd::engines::reference
