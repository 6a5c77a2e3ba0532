// SPDX-License-Identifier: Apache-2.0
// How pool_columns cuts average pooling, forward and backward: a block makes a tile of the result, of some
// whole planes, or of rows and columns of neighbouring ones. Rows are lines of elements: pixels of a plane,
// or pixels x channels where those are innermost, so that any number of channels is moved in whole vectors.
// What is read is the source: x forward, y backward.
#pragma once

#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_sources.h"
#include "kernels/cuda/pooling/pool_strips.h"

namespace retrograd::kernels::cuda {

inline constexpr int kColumnsThreads = 128;
inline constexpr int kColumnsBytes = 48 << 10;  // of shared memory that a block may have
inline constexpr int64_t kColumnsDepths = 65536;
// Whether windows span depths and the result has more than so many: the plan would go over all of them.
bool is_too_deep(const Pool& pool, bool forward);
// No planes: it is too deep, or no tile fits.
ColumnsCut columns_cut(const Pool& pool, bool channels_last, bool forward);

// The source or the result: elements of a line, of a plane, of all; elements that its address is behind a
// multiple of 16 bytes; in shared memory, distances of lines and of planes; runs and chunks of a tile whose
// lines are not neighbours (pool_lines.h).
struct PoolSide {
  int line, plane, total, shift;
  int pitch, layer;
  FastDiv runs, chunks;
};

// A block's shared memory: where sums and results begin and what it takes, in bytes; distances of sums.
struct PoolShared {
  int sums_pitch, sums_rows;
  int sums_at, results_at, bytes;
};

// What numbers of places, planes, tiles and items are divided by.
struct PoolCounts {
  FastDiv channels, depths, s_depths, row_tiles, column_tiles, strips, bands, s_columns;
};

struct PoolColumns : PoolAxes {
  bool whole;               // tiles have whole lines
  bool deep;                // windows have depths
  bool divide;              // windows have different divisors
  bool edges;               // results add what lies beside a line
  int inner;                // channels of a place in a line
  int s_rows, s_width;      // places of the source
  int planes, rows, steps;  // of the result, planes of all images and depths; steps: of a plane
  ColumnsCut cut;
  int unit_h, unit_w;    // results of a step and of a strip
  int phase_h, phase_w;  // those of the first before the line
  int vector;            // elements of 16 bytes
  PoolSide source, result;
  PoolShared shared;
  float usual;  // what windows count along D and H together, mostly
  PoolCounts by;
  unsigned blocks;
};
PoolColumns columns_of(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut);

inline WindowKey window_key(const PoolColumns& p, bool forward) {
  const auto& [d, h, w] = p.windows.axes;
  return {forward, !p.divide, h.kernel, h.stride, w.kernel, w.stride, p.inner};
}

}  // namespace retrograd::kernels::cuda
