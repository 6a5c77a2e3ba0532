// SPDX-License-Identifier: Apache-2.0
// How a grad_weight pass is cut for dense_grad_weight.cpp. Pure functions of the pass and the machine's
// vectors, never of the threads: sums are added in the order of the boxes within a split, then of the splits.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/boxes.h"
#include "engines/cpu/machine_vectors.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// The most. 112 is a third slower: sums are loaded and stored once a box.
inline constexpr int64_t kPositionsPerBox = 768;

struct GradWeightBlocking {
  VectorShape vectors;
  bool lanes_are_x = false;  // which operand's channels fill the vectors; the other's are rows
  int64_t width = 0;         // of the tiles, the last ones of a group apart
  int64_t narrowest = 0;     // that a tile may be
  int64_t lanes = 0;         // channels that are lanes, in a group
  int64_t lane_blocks = 0;   // of the channels of one tile
  int64_t lane_group = 1;    // of these in a task, which copies its rows once for all of them
  bool lanes_stay = false;   // where they are, in tiles that they fill
  // Rows are plain, but their channels lie side by side: a tile would read a line for each position, and no
  // two positions share one. They are turned over, as rows of planes are.
  bool turns_rows = false;
  int64_t row_block = 0;  // row channels in a task
  int64_t row_blocks = 0;
  BoxGrid grid;                     // of output positions
  std::array<int64_t, 3> extent{};  // of the places of x that a full box reads
  int64_t splits = 0;               // of the boxes
  int64_t boxes_per_split = 0;

  // The first channel of a block of lanes, and the width of its tile.
  int64_t lane_first(int64_t block) const;
  int64_t width_at(int64_t lane) const;
  int64_t lane_groups() const { return (lane_blocks + lane_group - 1) / lane_group; }
  int64_t blocks(int64_t groups) const { return groups * lane_groups() * row_blocks; }
};
// `narrowest`: of the tiles there may be. `registers`: for tile registers (cells.h), which want
// neighbours along W side by side in the rows and multiply so fast that copying takes as long.
// `sums`: the vectors that sums are cut for (machine_vectors.h).
GradWeightBlocking plan_grad_weight(const problem::ConvPass& pass, const VectorShape& vectors,
                                    const VectorShape& sums, int64_t narrowest = 0, bool registers = false);

// Where the kernel has one tap, a stride only leaves out places of x: the same pass over a view of x without
// them.
problem::ConvPass without_idle_places(problem::ConvPass pass);

}  // namespace retrograd::engines::cpu
