// SPDX-License-Identifier: Apache-2.0
// How narrow_gather cuts a pass: a pure function of the pass and the machine's vectors.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engines/cpu/axis_folds.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/few_channels/residue_strips.h"
#include "engines/cpu/machine_vectors.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// What is computed with one list of offsets: a fold of each axis. Its results are (channel, residue of D, H,
// W), the last fastest: the order of the weights in memory where every residue has one tap.
struct NarrowProduct {
  std::vector<int64_t> offsets;  // of the terms of one source channel, into a channel of the strips
  std::vector<int64_t> tap_of;   // [residue of D, H, W][term]: index of the tap, or kNoTap
  int64_t residues = 0;          // of D, H, W
  bool in_order = false;         // every residue has one tap, and they are all the taps as they lie in memory
  int64_t row_step = 1;          // from the sums of one result to those of the next, in rows of sums

  int64_t terms() const { return static_cast<int64_t>(offsets.size()); }
};

// Results of one call of the kernel.
struct NarrowCall {
  size_t product = 0;
  int64_t first = 0, count = 0;  // results of the product
  int64_t weights = 0;           // where those of the call start, within a group's
  int64_t row = 0;               // of the sums of a part
  int64_t live = 0;              // where those of the call start, in NarrowCut::live
};

// A row of the result along W, which its residues fill together: one channel, one residue of D and of H.
struct NarrowUnit {
  int64_t channel = 0;
  FoldedResidue d, h;
  int64_t row = 0;  // of units, in the sums of its part
};

// Long rows of plain FP32 are read where they lie: copying them takes longer than the products. Only
// positions at the ends, which gather from outside or would read there with a whole vector, have strips.
struct NarrowInPlace {
  bool on = false;
  ResidueStrips strips;
  int64_t edge = 0;           // the most positions of an end
  int64_t edge_channels = 0;  // source channels in the strips of an end
  int64_t channels = 0;       // source channels of a call
};

// All residues of a box are computed in one task, from the same strips, so that rows of the result are
// written once and whole. Only where they are too many are the units cut into parts.
struct NarrowCut {
  VectorShape vectors;
  std::array<std::vector<AxisFold>, 3> folds;
  std::vector<NarrowProduct> products;
  std::vector<NarrowUnit> units;
  std::vector<size_t> store_order;  // units of each part as their rows lie in memory
  std::vector<FoldedResidue> ways;  // residues of W
  bool woven = false;               // they are all there are, in the order of their places
  std::vector<NarrowCall> calls;
  std::vector<size_t> first_call;  // of each part, and the end

  BoxGrid grid;  // of positions; a box lies in one image
  ResidueStrips strips;
  NarrowInPlace in_place;
  int64_t kernel_taps = 0;         // of the whole kernel
  int64_t channels = 0;            // result channels of a group
  int64_t group_weights = 0;       // floats
  int64_t units_per_part = 0;      // a part is a task
  int64_t channels_per_block = 0;  // source channels in the strips
  int64_t source_channels = 0;     // of a group
  int64_t groups_per_task = 1;
  int64_t groups_at_once = 1;  // in the strips and the sums: channels-last lines hold channels of several
  int64_t tasks = 0;
  bool whole_planes = true;  // a plane of results is one row in the pitch of the strips; else each row is one
  int64_t row_pitch = 0, plane_pitch = 0, out_pitch = 0;  // of the sums, in floats
  bool leaves_source = false;
  bool pads_weights = false;  // with zeros, so that what is not finite in the source goes where it should not
  std::vector<float> live;    // [term][result] of each call, 0 where a zero was padded; empty: none was

  int64_t parts() const { return static_cast<int64_t>(first_call.size()) - 1; }
  int64_t group_sums() const { return rows_per_part() * out_pitch; }  // floats
  int64_t rows_per_part() const { return units_per_part * static_cast<int64_t>(ways.size()); }

  // Puts taps[source channel][channel][tap] of `count` source channels from k on into the weights of every
  // call: [k][term][result]. Several at once: the weights of two calls are often a multiple of 4 KiB apart.
  void spread_weights(const float* taps, int64_t k, int64_t count, float* weights) const;
};

// `sums`: the vectors that sums are cut for (machine_vectors.h).
NarrowCut plan_narrow(const problem::ConvPass& pass, const VectorShape& vectors, const VectorShape& sums);

}  // namespace retrograd::engines::cpu
