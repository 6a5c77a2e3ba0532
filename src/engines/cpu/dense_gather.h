// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input with channels as the vector side: packed weights, zero-padded strips, 6-row tiles.
#pragma once

#include <array>
#include <vector>

#include "engines/cpu/axis_phases.h"
#include "engines/cpu/boxes.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& dense_gather();

// One phase of each axis together, and how it is computed. A pure function of the pass and the tile width.
struct GatherPhase {
  std::array<AxisPhase, 3> axes;
  int64_t taps = 0;  // of the three axes together; 0: the results are zeros
  BoxGrid grid;
  int64_t channels_per_block = 0;   // source channels in a strip
  std::array<int64_t, 3> extent{};  // of the strip of a full box
  std::vector<int64_t> offsets;     // of the taps in the strip, last axis fastest
  int64_t panel_floats = 0;         // packed weights of one group
};
std::vector<GatherPhase> plan_gather(const problem::ConvPass& pass, int64_t tile_width);

}  // namespace retrograd::engines::cpu
