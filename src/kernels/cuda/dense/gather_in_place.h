// SPDX-License-Identifier: Apache-2.0
// Gather products that read both operands where they lie: one launch, no rows are made before.
#pragma once

#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::kernels::cuda {

// kRows: the source has its channels side by side, weights their columns, all in whole chunks of 16 bytes.
// kElements: any strides and addresses; lanes take neighbouring places and columns, an element each.
enum class InPlaceForm : unsigned char { kRows, kElements };

// Elements from one weight to the next.
struct InPlaceWeights {
  int64_t group, term, column, tap[3];
};
// Axes of one element have stride 0. Folded columns must lie side by side.
InPlaceWeights in_place_weights(const Conv& conv, bool forward, Columns columns);

// Of sizes and strides alone; kRows wants addresses that are multiples of 16, too.
InPlaceForm in_place_form(const Conv& conv, bool forward, Columns columns);

// How the products of a launch are cut: tiles of 64 places by n columns, each sum in parts. Of the problem
// alone, as bits depend on the parts.
struct InPlaceCut {
  int n = 64, parts = 1;
  int64_t steps = 0;                  // the most of a tile: 128 bytes of the channels of one tap each
  int64_t tiles = 0, tile_steps = 0;  // of all residues, parts of a tile not counted
  int64_t partial_floats = 0;         // room for the parts' sums
};
InPlaceCut in_place_cut(const GatherProduct& product, InPlaceForm form,
                        std::span<const ProductAxes> residues);

// product.math: all three tensors are of that type, FP32 for kTF32; product.parts and the rows are not
// regarded.
void gather_in_place(const GatherProduct& product, InPlaceForm form, const InPlaceCut& cut,
                     std::span<const ProductAxes> residues, Stream stream);

}  // namespace retrograd::kernels::cuda
