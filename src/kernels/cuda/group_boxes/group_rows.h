// SPDX-License-Identifier: Apache-2.0
// forward and grad_input of groups of few channels, NHWC, 16-bit types: result[m, n] = Σ_{tap, c}
// source[place(m, tap), c] · weight[tap, n, c] out of boxes in shared memory.
//
// A block takes several groups, so that it reads and writes long runs of a pixel's channels, and goes through
// boxes of positions. Of each it stages every place of the source that some tap of some residue reads, zeros
// beyond the edges, while the box before is multiplied; a tap is an offset in the box. All residues of the
// strides are made of one box. Groups whose channels are no multiples of 8 are joined, weights between them
// zero.
#pragma once

#include "kernels/cuda/dense/gather_in_place.h"
#include "kernels/cuda/fast_div.cuh"

namespace retrograd::kernels::cuda {

inline constexpr int kGroupThreads = 256, kGroupWarps = kGroupThreads / 32;
inline constexpr int kGroupResidues = 8;  // of an axis
inline constexpr int kGroupTile = 32;     // positions that a warp makes at once
inline constexpr int kGroupQuad = 4;      // eights of result channels that it makes at once

// Along one axis position q, of a residue r, is the result's place q·result_step + r; for its tap j it reads
// the source at q·step + low + first + j·tap_step, with weight number tap_first + j·tap_stride.
struct GroupAxis {
  struct Residue {
    int first, taps, tap_first, results;
  };
  int positions;  // of residue 0, which has the most
  int result, result_step, source, step, low, tap_step, tap_stride, residues;
  int places, staged;  // of a box: positions, and places of the source
  Residue residue[kGroupResidues];
};

struct GroupProduct {
  GroupAxis axes[3];
  int images;                            // of a box
  int batch, residues, taps;             // taps: of all residues, each tap of the kernel once
  int joined;                            // groups that are treated as one
  int source_channels, result_channels;  // of one that is not joined
  int terms, columns;                    // eights of source and result channels of joined groups
  int groups, all_groups;                // joined ones: of a block, of all
  int chunks, tiles, quads;  // of a block: eights of source and result channels, fours of the latter
  int positions, staged;     // of a box
  int pitch;                 // bytes of a staged place
  uint32_t boxes;
  bool forward, repair;  // repair: a zero may have met what is not finite
  FastDiv by_chunks, by_quads, by_tiles, by_residues_w, by_residues_h;
  FastDiv by_places[3], by_staged[3];  // D, H, W
  FastDiv by_boxes[3];
  int stage_bytes, weight_bytes, shared_bytes;
};

struct GroupRows {
  GroupProduct product;
  bool fits = false;
  int slabs = 0, workers = 0;  // blocks: groups are shared out to slabs, boxes to workers
  double microseconds = 0;     // of a GPU with 132 multiprocessors
};
// residues: as engines/cuda/dense/product_axes.h has them. Of sizes alone; layouts and types are the caller's
// business.
GroupRows group_rows_plan(const Conv& conv, bool forward, std::span<const ProductAxes> residues);

// conv: 16-bit tensors, x and y NHWC at multiples of 16 bytes.
void group_rows(const Conv& conv, const GroupRows& plan, Stream stream);

}  // namespace retrograd::kernels::cuda
