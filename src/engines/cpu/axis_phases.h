// SPDX-License-Identifier: Apache-2.0
// Forward and grad_input as one form: a result gathers, for each of its places, values at fixed offsets.
//
// clang-format off
//   forward     y[j]             gathers  x[j·stride + (t·dilation − pad)]           for all taps t
//   grad_input  x[r + stride·j]  gathers  y[j + (r + pad − t·dilation) ÷ stride]     for taps t with a whole quotient
// clang-format on
//
// A stride above 1 splits grad_input into one dense phase for each residue r, so that no product is spent on
// zeros that were only inserted; every tap belongs to exactly one phase.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/cpu/short_list.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

struct PhaseTap {
  int64_t tap = 0;
  int64_t offset = 0;  // place in the source at position 0; may lie outside
};

struct AxisPhase {
  int64_t count = 0;        // positions
  int64_t first = 0;        // place of position 0 in the result
  int64_t step = 1;         // and from one position to the next
  int64_t source_size = 0;  // places of the source; what is gathered from outside is zero
  int64_t source_step = 1;  // in the source, from one position to the next
  ShortList<PhaseTap, 7> taps;

  int64_t lowest_offset() const;
  int64_t highest_offset() const;
  // Whether any position gathers from outside the source.
  bool leaves_source() const;
};

AxisPhase forward_phase(const problem::Window& window);
// Phases without positions are left out; those without taps stay, their results are zeros.
std::vector<AxisPhase> grad_input_phases(const problem::Window& window);

// The same pass with its longest axis as W, where rows along W are shorter than `shortest`. A convolution
// does not say which axis is which: sizes, taps and strides change places. Volumes with 2 or 3 frames on the
// last axis need this, and lines that are stored as columns.
using AxisLength = int64_t(const problem::ConvPass& pass, const problem::Window& axis);
problem::ConvPass with_long_rows(problem::ConvPass pass, int64_t shortest, AxisLength* length_of);

}  // namespace retrograd::engines::cpu
