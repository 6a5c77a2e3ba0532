// SPDX-License-Identifier: Apache-2.0
// How narrow_grad_weight cuts a pass: a pure function of the pass and the machine's vectors.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/axis_folds.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/few_channels/residue_strips.h"
#include "engines/cpu/machine_vectors.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// Rows of y as the kernel reads them.
enum class DotsRows {
  kInPlace,  // where they lie: they are whole vectors
  kJoined,   // where they lie, those of a plane as one: the strips have no halo
             // between their rows either
  kOneRow,   // a copy in the pitch of the strips with zeros between: a box is one
             // long row
  kFilled,   // a copy, each filled up to whole vectors
};

struct DotsCut {
  VectorShape vectors;
  std::array<AxisFold, 3> axes;
  int64_t taps = 1;           // that ever read inside x
  int64_t call_channels = 0;  // y channels of a call of the kernel
  int64_t y_block = 0, y_blocks = 0, x_block = 0,
          x_blocks = 0;        // channels of a task
  int64_t groups_at_once = 1;  // of a task, all channels of each: channels-last lines hold several
  BoxGrid grid;                // of positions
  ResidueStrips strips;
  int64_t splits = 0, boxes_per_split = 0;
  DotsRows y = DotsRows::kInPlace;
  int64_t y_pitch = 0;                // of the rows of a copy
  std::array<int64_t, 3> y_extent{};  // of the copy of one image
  int64_t y_stride = 0;               // from channel to channel of a copy

  bool copies_y() const { return y == DotsRows::kOneRow || y == DotsRows::kFilled; }
};

DotsCut cut_dots(const problem::ConvPass& pass, const VectorShape& vectors);

}  // namespace retrograd::engines::cpu
