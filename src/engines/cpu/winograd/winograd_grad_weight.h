// SPDX-License-Identifier: Apache-2.0
// grad_weight of 3 × 3 kernels by Winograd's F(3 × 3, 4 × 4), where reduced precision is allowed.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

// How the pass is cut. A pure function of the pass and the vector width, never of the threads: sums are added
// in the order of the tiles within a split, then of the chunks, then of the splits.
struct WinogradGradWeightCut {
  int64_t tiles_h = 0, tiles_w = 0;        // of a plane of y
  int64_t rows = 0;                        // tile rows of all planes of y
  int64_t rows_per_chunk = 0, chunks = 0;  // transformed at once
  int64_t rows_per_strip = 0;              // turned over at once
  int64_t x_block = 0;                     // x channels in a task, a multiple of the lanes
  int64_t x_blocks = 0, y_blocks = 0;      // of a group and depth tap; of a group
  int64_t splits = 0;                      // of the tiles of a chunk
  int64_t tiles_per_split = 0;
  int64_t x_tile = 0;  // floats from one tile of a block of x to the next
  int64_t chunk_tiles() const { return rows_per_chunk * tiles_w; }
};
WinogradGradWeightCut cut_winograd_grad_weight(const problem::ConvPass& pass, int64_t lanes);

}  // namespace retrograd::engines::cpu
