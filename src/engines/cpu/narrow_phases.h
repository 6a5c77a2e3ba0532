// SPDX-License-Identifier: Apache-2.0
// How narrow_gather cuts a pass: a pure function of the pass and the vector width.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/axis_folds.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/residue_strips.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// One product: a fold of each axis. Its results are (channel, residue of D, H, W), the last fastest: the
// order of the weights in memory where every residue has one tap.
struct NarrowPhase {
  std::array<AxisFold, 3> axes;
  BoxGrid grid;  // of positions; a box lies in one image
  ResidueStrips strips;
  std::vector<int64_t> offsets;    // of the terms of one source channel, into a channel of the strips
  std::vector<int64_t> tap_of;     // [residue of D, H, W][term]: index of the tap
  int64_t kernel_taps = 0;         // of the whole kernel
  int64_t channels = 0;            // result channels of a group
  int64_t results = 0;             // of a group, residues included
  int64_t block = 0;               // results of one call of the kernel
  int64_t results_per_task = 0;    // a multiple of `block`, or all
  int64_t parts = 1;               // of the results, a task each
  int64_t channels_per_block = 0;  // source channels in the strips
  int64_t source_channels = 0;     // of a group
  int64_t groups_per_task = 1;
  int64_t tasks = 0;
  bool whole_planes = true;  // a plane of results is one row in the pitch of the strips; else each row is one
  int64_t row_pitch = 0, plane_pitch = 0, out_pitch = 0;  // of the sums, in floats
  bool leaves_source = false;

  int64_t terms() const { return static_cast<int64_t>(offsets.size()); }
  int64_t group_weights() const { return results * source_channels * terms(); }
  int64_t residues() const { return results / channels; }

  struct Result {
    int64_t channel = 0;
    std::array<const FoldedResidue*, 3> residues{};
  };
  Result result_at(int64_t index) const;

  // Puts taps[channel][tap] of source channel k into weights[block of results][k][term][result].
  void spread_weights(const float* taps, int64_t k, float* weights) const;
};

std::vector<NarrowPhase> plan_narrow(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cpu
