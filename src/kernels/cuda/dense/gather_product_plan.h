// SPDX-License-Identifier: Apache-2.0
// Which tiles of m pixels by n channels a gather product is cut into. All of them add in the same order.
#pragma once

#include "kernels/cuda/dense/gather_product.h"

namespace retrograd::kernels::cuda {

struct GatherTiles {
  int m, n;
  double time;
};
// time: in results of a multiprocessor that are made one after the other, or idle.
GatherTiles gather_tiles(int64_t places, int64_t columns, int64_t groups, ProductMath math,
                         int multiprocessors);

// Into how many parts the sums are cut (split-K), so that few tiles with long sums fill a GPU: of the problem
// alone, as bits depend on it. count: groups times residues; steps: the most of a residue.
int gather_parts(int64_t places, int64_t columns, int64_t count, int64_t steps);

// The tiles of a whole product, and the room that its parts need.
struct GatherCut {
  GatherTiles tiles;
  int64_t partial_floats;
};
GatherCut gather_cut(const GatherProduct& product, std::span<const ProductAxes> residues);

// How a tile's results are stored: neighbouring lanes take neighbouring columns or places, `length` at a time
// that lie side by side and whose address, counted from the result's, is a multiple of as many: 16 bytes, 8
// or one element. The result's own address counts, too.
struct GatherRun {
  bool by_columns;
  int length;
};
GatherRun gather_run(const GatherProduct& product, std::span<const ProductAxes> residues);

// The same of f32_gather; steps: of 32 terms. The steps of a tile are shared among the blocks of a cluster,
// as many as the problem alone says, since bits depend on it. time: in microseconds.
struct F32Tiles {
  int m, n, shares;
  double time;
};
F32Tiles f32_gather_tiles(int64_t places, int64_t columns, int64_t steps, ProductMath math,
                          int multiprocessors);

}  // namespace retrograd::kernels::cuda
