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
ColumnsCut columns_cut(const Pool& pool, bool channels_last, bool forward);

struct PoolColumns : PoolAxes {
  bool whole;           // tiles have whole lines
  bool deep;            // windows have depths
  bool divide;          // windows have different divisors
  int inner;            // channels of a place in a line
  int s_line, r_line;   // elements of a line: of the source, of the result
  int s_rows, s_width;  // places of the source
  int s_plane, r_plane, s_total, r_total;
  int planes, rows, steps;  // of the result, planes of all images and depths; steps: of a plane
  ColumnsCut cut;
  int unit_h, unit_w, phase_h,
      phase_w;           // results of a step and of a strip; those of the first before the line
  int vector;            // elements of 16 bytes
  int s_shift, r_shift;  // elements that the addresses are behind multiples of 16 bytes
  // In shared memory: distances of lines and planes, and where sums and results begin, in bytes.
  int s_pitch, s_layer, r_pitch, r_layer, sums_pitch, sums_rows, sums_at, results_at, bytes;
  float usual;                                 // what windows count along D and H together, mostly
  FastDiv s_runs, s_chunks, r_runs, r_chunks;  // of tiles whose lines are not neighbours (pool_lines.h)
  FastDiv channels, depths, s_depths, row_tiles, column_tiles, strips, bands, s_columns;
  unsigned blocks;
};
PoolColumns columns_of(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut);

inline WindowKey window_key(const PoolColumns& p, bool forward) {
  const auto& [d, h, w] = p.windows.axes;
  return {forward, !p.divide, h.kernel, h.stride, w.kernel, w.stride, p.inner};
}

}  // namespace retrograd::kernels::cuda
