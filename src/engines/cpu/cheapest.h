// SPDX-License-Identifier: Apache-2.0
// For implementations that leave a part of their pass to another (Candidate::rest).
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

// Who computes a pass at the least cost; the reference takes what nobody else does.
const Candidate& cheapest_for(const problem::Pass& pass, const Machine& machine);

}  // namespace retrograd::engines::cpu
