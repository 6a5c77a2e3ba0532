// SPDX-License-Identifier: Apache-2.0
// The planner's rule (plan/plan.cpp) for the remaining pass: the least cost, and the first of equals.
#include "engines/cpu/cheapest.h"

#include "engines/cost.h"
#include "engines/reference/reference.h"
#include "engines/registry.h"

namespace retrograd::engines::cpu {

const Candidate& cheapest_for(const problem::Pass& pass, const Machine& machine) {
  const Candidate* best = nullptr;
  double least = 0;
  for (const Candidate* candidate : candidates(runtime::DeviceKind::kCpu)) {
    if (!candidate->supports(pass, machine).accepted()) continue;
    const double us = cost(*candidate, pass, machine);
    if (best != nullptr && us >= least) continue;
    best = candidate;
    least = us;
  }
  return best != nullptr ? *best : reference::candidate();
}

}  // namespace retrograd::engines::cpu
