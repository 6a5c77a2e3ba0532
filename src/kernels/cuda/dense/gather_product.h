// SPDX-License-Identifier: Apache-2.0
// forward and grad_input as a matrix product over rows of channels: pixels by result channels, summed over
// taps and source channels. Strides of grad_input come as one product for each residue, all in one launch.
// Where no two windows share a pixel of x, grad_input is one product of grad_output's pixels by all weights
// of a y channel: every sum has its own pixel and channel ("folded"). Where x has few channels, forward is
// one product of whole windows by all weights of a y channel ("patches").
#pragma once

#include <array>
#include <span>

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Along one axis: result i of this product lies at i·result_step + result_first and reads, for tap j, the
// source at i·step + first + j·tap_step, with weight number tap_first + j·tap_stride.
struct ProductAxis {
  int64_t results, result_step = 1, result_first = 0;
  int64_t source, step = 1, first = 0;
  int64_t taps = 1, tap_step = 0, tap_first = 0, tap_stride = 1, kernel = 1;
};

using ProductAxes = std::array<ProductAxis, 3>;
constexpr int kMostResidues = 16;  // of a launch

// What the columns of a product are: channels, or channels and taps, the faster of the two named.
enum class Columns : unsigned char { kChannels, kFoldedTapsFast, kFoldedChannelsFast };

struct GatherProduct {
  Conv conv;             // for results that are not finite, which are taken from the formula
  bool forward;          // the result is y, else x
  bool padded;           // whether a tap may lie beyond the edge
  bool warpgroups;       // the GPU has Hopper's products
  bool patches = false;  // forward only: both rows hold x channels and taps, axes have one tap
  int multiprocessors;
  Columns columns = Columns::kChannels;
  ProductAxes axes;  // of one residue; gather_product has its own
  ProductMath math;
  int parts = 1;             // of each sum, by blocks of their own (split-K); not for warpgroups
  float* partial = nullptr;  // room for their sums: gather_partial_floats
  const void* source_rows;
  const void* weight_rows;
};

// Channels of a source row, those of a tap and a group.
inline int64_t row_channels(const GatherProduct& product) {
  const Conv& conv = product.conv;
  if (!product.forward) return conv.y_channels;
  if (!product.patches) return conv.x_channels;
  return conv.x_channels * conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel;
}

// Folded: one product, with the axes of grad_output and result_step, result_first saying where the first tap
// of a window lies; weight rows are [groups][columns][y channels filled up].
void gather_product(const GatherProduct& product, std::span<const ProductAxes> residues, Stream stream);

// Zeros, whatever the type of the elements.
void clear(void* data, size_t bytes, Stream stream);

// ---- which tiles of m pixels by n channels a product is cut into; all of them add in the same order

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
