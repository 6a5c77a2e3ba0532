// SPDX-License-Identifier: Apache-2.0
// What the CPU implementations do for a convolution, for their costs (engines/cost.h): products with idle
// lanes counted, and calls: whatever takes about 10 ns of two threads, as a row that is converted, 50
// elements that are copied or packed, a short tile. Which channels or positions lie side by side in a vector
// decides how full its lanes are; how long the rows are decides how many calls there are.
#pragma once

#include "base/machine.h"
#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Channels of the result as lanes, all source channels and taps a tile.
Effort dense_gather_effort(const problem::Pass& pass, const Machine& machine);
// The same in AMX tiles: rows of 8 positions, 16 source channels at once.
Effort amx_gather_effort(const problem::Pass& pass, const Machine& machine);
// Positions as lanes.
Effort pointwise_gather_effort(const problem::Pass& pass, const Machine& machine);
Effort few_channels_gather_effort(const problem::Pass& pass, const Machine& machine);

// The larger side's channels as lanes, the other's as rows, tap by tap.
Effort dense_grad_weight_effort(const problem::Pass& pass, const Machine& machine);
Effort amx_grad_weight_effort(const problem::Pass& pass, const Machine& machine);
// x channels as rows, 32 positions at once.
Effort amx_places_grad_weight_effort(const problem::Pass& pass, const Machine& machine);
// y channels as lanes, (x channel, tap) as rows.
Effort stem_grad_weight_effort(const problem::Pass& pass, const Machine& machine);
// Positions of a row of y as lanes.
Effort few_channels_grad_weight_effort(const problem::Pass& pass, const Machine& machine);

// One channel a group, every pass: planes, positions along W, or channels as lanes.
Effort depthwise_planes_effort(const problem::Pass& pass, const Machine& machine);
Effort depthwise_rows_effort(const problem::Pass& pass, const Machine& machine);
Effort depthwise_channels_effort(const problem::Pass& pass, const Machine& machine);

}  // namespace retrograd::engines::cpu
