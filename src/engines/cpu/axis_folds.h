// SPDX-License-Identifier: Apache-2.0
// A gathering pass along one axis with several residues of the result in one product.
//
//   forward     y[j]                     gathers  x[j·stride + offset]
//   grad_input  x[first(r) + stride·j]   gathers  y[j + offset]          through the tap of (r, offset)
//
// Residues that read through the same offsets are folded: they become further result channels of one product.
// A patch embedding is then one matrix product, where phases of a tap each would read y once a residue. They
// are folded only where every pair (r, offset) has a tap. A stem of 7 taps and stride 2 would need products
// for 8: with sums for all registers (kernels/cpu/few_channels/row_sums.h) its residues alone are faster, 152
// GFLOP/s against 118 (rn50_stem_7x7s2, 2 threads on Zen 4).
#pragma once

#include <cstdint>
#include <vector>

#include "engines/cpu/short_list.h"
#include "problem/window.h"

namespace retrograd::engines::cpu {

struct FoldedResidue {
  int64_t first = 0;         // place of position 0 in the result; may lie outside
  problem::Range positions;  // those whose place lies inside
};

inline constexpr int64_t kNoTap = -1;

struct AxisFold {
  int64_t count = 0;        // positions
  int64_t step = 1;         // in the result, from one position to the next
  int64_t source_size = 0;  // places of the source; what is gathered from outside is zero
  int64_t source_step = 1;  // in the source, from one position to the next
  ShortList<int64_t, 7> offsets;
  ShortList<FoldedResidue, 2> residues;
  ShortList<int64_t, 7> taps;  // [residue][offset]; kNoTap where the residue does not read through the offset

  int64_t lowest_offset() const { return offsets.empty() ? 0 : offsets.front(); }
  int64_t highest_offset() const { return offsets.empty() ? 0 : offsets.back(); }
  // Whether any position gathers from outside the source.
  bool leaves_source() const;
};

// Pairs of neighbours instead of positions: what is read for one serves the other too, and each has an offset
// without a tap. Only for a fold of one residue and steps of 1.
AxisFold in_pairs(const AxisFold& fold);

std::vector<AxisFold> forward_folds(const problem::Window& window);
// Together they hold every place of x once. At most min(stride, x) of them or residues in one.
std::vector<AxisFold> grad_input_folds(const problem::Window& window);

}  // namespace retrograd::engines::cpu
