// SPDX-License-Identifier: Apache-2.0
// Writing the sums of narrow_gather into the result.
#pragma once

#include "engines/cpu/few_channels/narrow_cut.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// The sums of a part of one group's units over a box; or of all units of several groups.
struct NarrowSums {
  BoxGrid::Box box;
  int64_t group = 0, groups = 1;
  int64_t first_unit = 0, last_unit = 0;  // in cut.units
  const float* sums = nullptr;            // [group][unit][residue of W][plane][row]
  float* row = nullptr;                   // scratch: a row of the result
};
void store_narrow(const problem::ConvPass& pass, const NarrowCut& cut, const Bindings& bindings,
                  const NarrowSums& sums);

}  // namespace retrograd::engines::cpu
