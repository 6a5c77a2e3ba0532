// SPDX-License-Identifier: Apache-2.0
// Average pooling forward through shared memory (ForwardKernel::kColumns): a block makes a tile of y, of some
// whole planes or of rows and columns of one. Lines are places of a plane, or places x channels where those
// are innermost, so that any number of channels is read in whole vectors.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_forward.h"
#include "kernels/cuda/pooling/pool_lines.h"
#include "kernels/cuda/pooling/pool_plan.h"

namespace retrograd::kernels::cuda {

inline constexpr int kForwardThreads = 256;
inline constexpr int kForwardBytes = 48 << 10;  // of shared memory that a block may have

ForwardCut forward_cut(const Pool& pool, bool channels_last);

struct ForwardColumns {
  Windows windows;
  int inner;             // channels of a place in a line
  int xw, yw;            // elements of a line
  int planes;            // of y
  bool whole;            // tiles have whole lines
  int vector;            // elements of 16 bytes
  int x_shift, y_shift;  // elements that the addresses are behind multiples of 16 bytes
  ForwardCut cut;
  int x_pitch, y_pitch;  // of lines in shared memory
  int x_floats, bytes;
  FastDiv channels, row_tiles, column_tiles, tile_columns, tile_rows;
  unsigned blocks;
};
ForwardColumns forward_columns_of(const Pool& pool, bool channels_last, const ForwardCut& cut);

void pool_forward_columns(const Pool& pool, bool channels_last, const ForwardCut& cut, Stream stream);

struct ForwardTile {
  PoolLines x, y;
  int x_row, x_column;  // of x's first element: its row, and its element in the line
  int y_row, y_column;
};

RG_DEVICE inline ForwardTile forward_tile(const ForwardColumns& p, uint32_t block) {
  const auto& [d, h, w] = p.windows.axes;
  uint32_t column_tile = block;
  uint32_t row_tile = p.column_tiles.split(column_tile);
  const int plane = static_cast<int>(p.row_tiles.split(row_tile)) * p.cut.planes;
  ForwardTile t;
  t.y_row = static_cast<int>(row_tile) * p.cut.rows;
  t.y_column = static_cast<int>(column_tile) * p.cut.columns;
  const int planes = least(p.cut.planes, p.planes - plane), rows = least(p.cut.rows, h.y - t.y_row),
            columns = least(p.cut.columns, p.yw - t.y_column);
  const auto mask = static_cast<uint32_t>(p.vector - 1);
  const auto place = [&](int first, int shift) {
    return static_cast<int>((static_cast<uint32_t>(first) + static_cast<uint32_t>(shift)) & mask);
  };
  const int y_first = (plane * h.y + t.y_row) * p.yw + t.y_column;
  t.y = {p.whole,  planes, rows, columns, y_first, p.yw, p.planes * h.y * p.yw, place(y_first, p.y_shift),
         p.y_pitch};
  // Several planes are one run: all their rows.
  const bool several = p.cut.planes > 1;
  const Places top = places_of(h, t.y_row), bottom = places_of(h, t.y_row + rows - 1);
  t.x_row = several ? 0 : least(top.begin, h.x);
  const int x_rows = several ? h.x : most(bottom.end - t.x_row, 0);
  int x_columns = p.xw;
  t.x_column = 0;
  if (!p.whole) {
    const int left = static_cast<int>(p.channels.quotient(static_cast<uint32_t>(t.y_column))),
              right = static_cast<int>(p.channels.quotient(static_cast<uint32_t>(t.y_column + columns - 1)));
    const int begin = least(places_of(w, left).begin, w.x);
    t.x_column = begin * p.inner;
    x_columns = most(places_of(w, right).end - begin, 0) * p.inner;
  }
  const int x_first = (plane * h.x + t.x_row) * p.xw + t.x_column;
  t.x = {p.whole,  planes, x_rows, x_columns, x_first, p.xw, p.planes * h.x * p.xw, place(x_first, p.x_shift),
         p.x_pitch};
  return t;
}

// One result after the other: rows of places first, then rows.
template <class Codec>
RG_DEVICE void add_windows(const ForwardColumns& p, const ForwardTile& t, uint32_t thread, uint32_t threads,
                           const float* staged, typename Codec::Type* results) {
  const auto& [d, h, w] = p.windows.axes;
  const uint32_t items = static_cast<uint32_t>(t.y.planes) * p.tile_rows.divisor * p.tile_columns.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t number = item;
    uint32_t line = p.tile_columns.split(number);
    const int plane = static_cast<int>(p.tile_rows.split(line)), row = static_cast<int>(line),
              column = static_cast<int>(number);
    if (row >= t.y.rows || column >= t.y.columns) continue;
    auto channel = static_cast<uint32_t>(t.y_column + column);
    const auto window = static_cast<int>(p.channels.split(channel));
    const Places rows = places_of(h, t.y_row + row), columns = places_of(w, window);
    const int count = columns.end - columns.begin;
    const float* from = staged + t.x.at + plane * t.x.rows * t.x.pitch + (rows.begin - t.x_row) * t.x.pitch +
                        (columns.begin * p.inner + static_cast<int>(channel) - t.x_column);
    float sum = 0;
    for (int i = rows.begin; i < rows.end; ++i, from += t.x.pitch) {
      float across = 0;
      RG_UNROLL_BY(4)
      for (int j = 0; j < count; ++j) across += from[j * p.inner];
      sum += across;
    }
    const float average = p.windows.uniform ? Codec::add_product(sum, p.windows.scale, 0.0f)
                                            : sum / (static_cast<float>(count_of(h, t.y_row + row)) *
                                                     static_cast<float>(count_of(w, window)));
    results[t.y.at + plane * t.y.rows * t.y.pitch + row * t.y.pitch + column] = Codec::store(average);
  }
}

}  // namespace retrograd::kernels::cuda
