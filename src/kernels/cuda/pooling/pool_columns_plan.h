// SPDX-License-Identifier: Apache-2.0
// How pool_columns cuts average pooling backward: a block takes a tile of x, of some whole planes or of rows
// and columns of one. Rows are lines of elements: places of a plane, or places x channels where those are
// innermost, so that any number of channels is moved in whole vectors.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_strips.h"

namespace retrograd::kernels::cuda {

inline constexpr int kColumnsThreads = 128;
inline constexpr int kColumnsBytes = 48 << 10;  // of shared memory that a block may have
ColumnsCut columns_cut(const Pool& pool, bool channels_last);

struct PoolColumns {
  Windows windows;
  FastDiv strides[3];
  int inner;             // channels of a place in a line
  int xw, yw;            // elements of a line
  int x_plane, y_plane;  // elements
  int x_total, y_total;
  int planes;            // of x, depths included
  int reach_h, reach_w;  // windows that hold a place, at most
  int split_h;  // of the places between two windows' starts, those before it are held by reach_h, others by
                // one less
  ColumnsCut cut;
  bool whole;                    // tiles have whole lines
  bool deep;                     // windows have depths
  bool divide;                   // before the walk
  int vector;                    // elements of 16 bytes
  int x_shift, y_shift;          // elements that the addresses are behind multiples of 16 bytes
  int y_line, y_staged, x_line;  // in shared memory: distances of lines and planes of y, of lines of x
  int y_floats, bytes;           // y_floats: margins included
  FastDiv channels, depths, y_depths, row_tiles, column_tiles;
  FastDiv strips, bands;                 // walks: of a line, of a plane
  FastDiv staged_columns, staged_lines;  // of y, at most
  unsigned blocks;
};
PoolColumns columns_of(const Pool& pool, bool channels_last, const ColumnsCut& cut);

}  // namespace retrograd::kernels::cuda
