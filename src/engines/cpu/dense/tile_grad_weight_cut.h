// SPDX-License-Identifier: Apache-2.0
// How a grad_weight pass is cut for tile_grad_weight.cpp, and where the pixels of a box lie in its copies.
// Pure functions of the pass: sums are added in the order of the boxes within a split, then of the splits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/boxes.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// The numbers that one instruction adds over: a piece. More pieces than this a box has not.
inline constexpr int64_t kPiece = 32;
inline constexpr int64_t kMostPieces = 512;

// Where the taps of an axis read: in the copy of the places that have their remainder of the stride, some
// places behind the output position.
struct TileAxis {
  std::vector<int64_t> residues;            // of t·dilation by the stride, those there are
  std::vector<int64_t> phase_of, steps_of;  // of a tap: the index of its residue, and places behind
  int64_t halo = 0;                         // the most places behind
};

// Copies of a box hold its positions and the halo behind them, [image][d][h][w]; w is even, so that pairs of
// neighbours never cross a row. What of the copy of y is no position is zero: the products there are too.
struct TileSpace {
  TileSpace(const std::array<TileAxis, 3>& axes, const Positions& box);
  std::array<int64_t, 3> extent;  // of an image
  std::array<int64_t, 4> step;    // from one image, d, h and w to the next
  int64_t numbers;                // of one channel, whole pieces
  int64_t pitch;                  // from channel to channel of x: another piece that shifted reads reach
};

struct TileGradWeightCut {
  explicit TileGradWeightCut(const problem::ConvPass& pass);

  problem::ConvPass pass;  // rows joined, places that no tap reads left out
  std::array<TileAxis, 3> axes;
  int64_t phases = 1;                       // copies of x, by the residues of the three axes
  int64_t outer_phases = 1;                 // of the axes that are not folded
  size_t folded_from = 3;                   // axes from here on whose taps are rows beside the channels
  int64_t folded_taps = 1;                  // of these axes
  int64_t taps = 1;                         // of the others
  int64_t row_block = 0, row_blocks = 0;    // channels of x in a task
  int64_t lane_block = 0, lane_blocks = 0;  // channels of y in a task, a multiple of kLanes
  BoxGrid grid;                             // of output positions
  int64_t splits = 0, boxes_per_split = 0;
  int64_t numbers = 0, pitch = 0;  // of the largest box, as in TileSpace

  static constexpr int64_t kLanes = 32;  // of a panel of y: two registers
  int64_t blocks() const { return pass.groups * row_blocks * lane_blocks; }
  int64_t rows() const { return row_block * folded_taps; }  // of a task's sums, for each tap
  int64_t sum_floats() const { return taps * rows() * lane_block; }
  bool fits() const { return numbers <= kMostPieces * kPiece; }
};

}  // namespace retrograd::engines::cpu
