// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input of 3 × 3 kernels by Winograd's F(4 × 4, 3 × 3), where reduced precision is allowed.
#pragma once

#include "engines/cpu/axis_phases.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// How the pass is cut. A pure function of the pass and the tile width.
struct WinogradGatherCut {
  AxisPhase depth;                   // taps along D are terms of the sum, like channels
  int64_t planes = 0;                // of results, in all images
  int64_t tiles_h = 0, tiles_w = 0;  // of a plane
  int64_t block_planes = 0;          // planes, tile rows and tile columns of a block
  int64_t rows = 0, columns = 0;
  int64_t blocks_p = 0, blocks_h = 0, blocks_w = 0;
  // Few weights are transformed beforehand and kept for all blocks. Many would fill the cache: each task then
  // transforms those it needs, for blocks as large as make that cheap.
  bool keeps_kernels = false;
  int64_t terms_at_once = 0;     // where it does not: channels whose kernels a task transforms at once
  int64_t blocks_per_chunk = 0;  // and blocks whose data are transformed at once

  int64_t block_tiles() const { return block_planes * rows * columns; }
  int64_t blocks() const { return blocks_p * blocks_h * blocks_w; }  // of a group
};
WinogradGatherCut cut_winograd_gather(const problem::ConvPass& pass, int64_t tile_width);

}  // namespace retrograd::engines::cpu
