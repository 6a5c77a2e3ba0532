// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of 3 × 3 kernels by Winograd's F(4 × 4, 3 × 3), where reduced precision is allowed.
#pragma once

#include <vector>

#include "engines/cpu/axis_phases.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& winograd_gather();

// How the pass is cut. A pure function of the pass and the tile width.
struct WinogradGatherCut {
  AxisPhase depth;                            // taps along D are terms of the sum, like channels
  int64_t tiles_h = 0, tiles_w = 0;           // of a plane of results
  int64_t images = 0, rows = 0, columns = 0;  // images, tile rows and tile columns of a block
  int64_t blocks_n = 0, blocks_h = 0, blocks_w = 0;
  int64_t block_tiles() const { return images * rows * columns; }
};
WinogradGatherCut cut_winograd_gather(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cpu
