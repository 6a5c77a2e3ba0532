// SPDX-License-Identifier: Apache-2.0
// The cheapest implementation of a pass, for implementations that copy or cut and delegate the sums
// (Candidate::rest).
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

// Who computes a pass at the least cost; the reference takes what nobody else does.
const Candidate& cheapest_for(const problem::Pass& pass, const Machine& machine);

}  // namespace retrograd::engines::cpu
