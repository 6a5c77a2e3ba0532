// SPDX-License-Identifier: Apache-2.0
// How depthwise convolutions of planes (NCHW) are cut that go through shared memory, any window:
//   forward      y[n,o,p] = Σ_{i,t} x[n,i,position(p,t)] · w[o,i,t]
//   grad_input   x[n,i,q] = Σ_{o,t} y[n,o,output_reading(q,t)] · w[o,i,t]
//   grad_weight  w[o,i,t] = Σ_{n,p} x[n,i,position(p,t)] · y[n,o,p]
// A block makes a box of results: of some groups of channels, planes along D, rows, columns. It stages the
// rows of the source that these read, in vectors of 16 bytes and each once, then threads take their terms
// from there: dilated taps, and all results of a channel, cost no more bytes than one tap.
//
// A thread makes kV results of a column for every result channel of the group. They lie `spacing` rows apart,
// so that what one reads with a tap the one before reads with the next tap. Where dilated windows of a large
// plane would need many rows between, a block takes every classes-th row (`split`) and stages only those
// rows of the source that they read.
//
// grad_weight: a block takes one pair of channels and the boxes of a part (split K), one after the other,
// staged as those of forward. Each warp has a tile of taps, at most 5 x 5, whose sums it keeps in registers:
// a thread reads kV values of y once and, for each column of taps, the kV + rows - 1 values of x that meet
// them. Along H the taps of a tile lie stride/g apart and a thread's pixels dilation/g apart, g = gcd(stride,
// dilation): then a step along either moves x by as much, whatever stride and dilation are.
#pragma once

#include <cstdint>

#include "kernels/cuda/depthwise_windows/windows_axis.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

inline constexpr int kStagedThreads = 256;
inline constexpr int kStagedChunk = 4;               // taps of a column that are walked at once
inline constexpr int kTapRows = 5, kTapColumns = 5;  // of a tile of grad_weight, at most
inline constexpr int kWeightWarps = 8;               // of a block of grad_weight, at most

// What numbers of items, of staged vectors, of blocks and of weights are divided by.
struct StagedCounts {
  FastDiv columns, slots, spacing, depths, groups;
  FastDiv vectors, source_rows, source_depths;
  FastDiv column_tiles, classes, row_tiles, depth_tiles;
  FastDiv taps, sources;
};

struct Staged {
  DepthwiseAxis d, h, w;
  int sources, results;  // channels of a group that a result adds, and that share them
  int groups, taps;
  int all_planes;                     // groups of all images; grad_weight: images
  int plane_step;                     // planes of the source between a block's
  int planes, depths, rows, columns;  // a block's results; rows of one class
  bool split;
  int classes;                               // rows of the result between a block's
  int row_step;                              // rows of the source between staged ones
  int spacing;                               // of a thread's results, in rows of the block
  int spread, tap_rows;                      // staged rows by spacing, and from matching tap to matching tap
  int chunk;                                 // matching taps of a column at once, at most
  int source_depths, source_rows, row_room;  // staged; elements from row to row
  int slide, results_at_once;                // kV, kM; 0: no weights are staged
  int slots;                                 // of kV rows
  uint32_t items;                            // of a block
  uint32_t total;                            // elements of the source
  StagedCounts by;
  DepthwiseKernels kernels;
};

struct StagedPlan {
  Staged staged;
  bool fits;  // into shared memory
  int64_t shared, blocks;
  double instructions;  // of all threads, about
};
StagedPlan staged_plan(const Conv& conv, bool forward);

// A tile of taps: along H, tap first_row + j·rows_apart.
struct TapBox {
  int depth, first_row, rows, first_column, columns;
};

struct StagedWeights {
  Staged staged;               // of forward, one channel
  int x_channels, y_channels;  // of the tensors
  FastDiv by_x, by_y;          // pairs of channels that share one of x and of y
  int rows_apart;
  int chunk_rows, chunk_columns;  // taps of a tile
  int tiles, tiles_a_block, warps_a_tile;
  FastDiv by_column_chunks, by_row_chunks, by_row_classes, by_tile_groups, by_pairs, by_warps;
  uint32_t boxes, boxes_a_part;
  uint32_t box_elements;  // of shared memory, which has two
  int64_t weights;        // of a part
};
struct StagedWeightPlan {
  StagedWeights work;
  bool fits;
  int64_t shared, threads, blocks;
  int64_t parts;  // a function of the problem, not of the machine
  double instructions;
};
StagedWeightPlan staged_weight_plan(const Conv& conv);

// Floats of a block's weights.
RG_HOST_DEVICE inline int staged_weights(const Staged& p) {
  return (p.planes * p.sources * p.taps * p.results_at_once + 3) / 4 * 4;
}

// Depthwise convolutions in NCHW through shared memory: one channel of one side a group and one to four of
// the other, any window, FP32, FP16 or BF16.
// The result is y where the plan is one of forward, else x. Both are dense planes.
void staged_gather(const Conv& conv, bool forward, const StagedPlan& plan, Stream stream);
// x and y are dense planes. The workspace holds plan.parts · plan.work.weights floats.
void staged_grad_weight(const Conv& conv, const StagedWeightPlan& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
