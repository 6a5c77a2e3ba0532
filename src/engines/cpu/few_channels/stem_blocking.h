// SPDX-License-Identifier: Apache-2.0
// How stem_grad_weight cuts a pass.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/axis_phases.h"
#include "engines/cpu/boxes.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// A pure function of the pass and the tile width, never of the threads: sums are added
// in the order of the boxes within a split, then of the splits.
// The most. 112 is a third slower: the sums are loaded and stored once a box.
inline constexpr int64_t kStemPositionsPerBox = 512;

struct StemBlocking {
  std::array<AxisPhase, 3> axes;    // positions are y's, the source is x
  BoxGrid grid;                     // of positions
  std::array<int64_t, 3> extent{};  // of the strip of a full box
  int64_t taps = 0;                 // that ever read inside x
  int64_t y_block = 0;              // y channels in a task, a multiple of the tile width
  int64_t x_block = 0;              // x channels in a task
  int64_t y_blocks = 0, x_blocks = 0;
  int64_t splits = 0;  // of the boxes
  int64_t boxes_per_split = 0;
};
// `sum_width`: of the tiles that sums are cut for (machine_vectors.h).
StemBlocking plan_stem(const problem::ConvPass& pass, int64_t tile_width, int64_t sum_width);

}  // namespace retrograd::engines::cpu
