// SPDX-License-Identifier: Apache-2.0
// Average pooling forward through shared memory (ForwardKernel::kColumns): a block makes a tile of y, of some
// whole planes or of rows and columns of one. Lines are places of a plane, or places x channels where those
// are innermost, so that any number of channels is read in whole vectors.
//
//   stage  the places of x that the tile's windows hold, to FP32
//   add    a thread a strip of neighbouring windows, downwards: a line of x is added over depths and across
//          once, for all windows that hold it; or, where windows are not common ones, a window at a time
//   flush  from shared memory to y
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/pooling/pool_forward.h"
#include "kernels/cuda/pooling/pool_lines.h"
#include "kernels/cuda/pooling/pool_plan.h"
#include "kernels/cuda/pooling/pool_strips.h"

namespace retrograd::kernels::cuda {

inline constexpr int kForwardThreads = 128;
inline constexpr int kForwardBytes = 48 << 10;  // of shared memory that a block may have

ForwardCut forward_cut(const Pool& pool, bool channels_last);

struct ForwardColumns {
  Windows windows;
  int inner;             // channels of a place in a line
  int xw, yw;            // elements of a line
  int x_planes, planes;  // of x and of y, depths included
  bool whole;            // tiles have whole lines
  bool deep;             // windows have depths
  int vector;            // elements of 16 bytes
  int x_shift, y_shift;  // elements that the addresses are behind multiples of 16 bytes
  ForwardCut cut;
  int x_pitch, x_layer, y_pitch;  // in shared memory: of lines and planes of x, of lines of y
  int x_floats, bytes;            // x_floats: margins included
  FastDiv channels, depths, row_tiles, column_tiles, strips, bands;  // depths: of y
  unsigned blocks;
};
ForwardColumns forward_columns_of(const Pool& pool, bool channels_last, const ForwardCut& cut);

void pool_forward_columns(const Pool& pool, bool channels_last, const ForwardCut& cut, Stream stream);

inline WalkKey walk_key(const ForwardColumns& p) {
  const auto& [d, h, w] = p.windows.axes;
  return {w.kernel, w.stride, h.kernel, h.stride, p.inner};
}

// The planes of x that the windows of a plane of y hold; depth: which of an image's.
struct HeldLayers {
  int begin, end, depth;
};
RG_DEVICE inline HeldLayers layers_held(const ForwardColumns& p, int plane) {
  if (!p.deep) return {plane, plane + 1, 0};
  const WindowAxis& a = p.windows.axes[0];
  auto depth = static_cast<uint32_t>(plane);
  const int first = static_cast<int>(p.depths.split(depth)) * a.x;
  const Places places = places_of(a, static_cast<int>(depth));
  return {first + least(places.begin, a.x), first + places.end, static_cast<int>(depth)};
}

struct ForwardTile {
  PoolLines x, y;       // x: of the first layer, or of all where they are one run
  int plane;            // of y
  int layer, layers;    // of x
  int x_row, x_column;  // of x's first element: its row, and its element in the line
  int y_row, y_column;
};

RG_DEVICE inline ForwardTile forward_tile(const ForwardColumns& p, uint32_t block) {
  const auto& [d, h, w] = p.windows.axes;
  uint32_t column_tile = block;
  uint32_t row_tile = p.column_tiles.split(column_tile);
  ForwardTile t;
  t.plane = static_cast<int>(p.row_tiles.split(row_tile)) * p.cut.planes;
  t.y_row = static_cast<int>(row_tile) * p.cut.rows;
  t.y_column = static_cast<int>(column_tile) * p.cut.columns;
  const int planes = least(p.cut.planes, p.planes - t.plane), rows = least(p.cut.rows, h.y - t.y_row),
            columns = least(p.cut.columns, p.yw - t.y_column);
  const auto mask = static_cast<uint32_t>(p.vector - 1);
  const auto place = [&](int first, int shift) {
    return static_cast<int>((static_cast<uint32_t>(first) + static_cast<uint32_t>(shift)) & mask);
  };
  const int y_first = (t.plane * h.y + t.y_row) * p.yw + t.y_column;
  t.y = {p.whole,  planes, rows, columns, y_first, p.yw, p.planes * h.y * p.yw, place(y_first, p.y_shift),
         p.y_pitch};
  t.layer = layers_held(p, t.plane).begin;
  t.layers = most(layers_held(p, t.plane + planes - 1).end - t.layer, 0);
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
  const int x_first = (t.layer * h.x + t.x_row) * p.xw + t.x_column;
  t.x = {p.whole,
         several || !p.deep ? t.layers : 1,
         x_rows,
         x_columns,
         x_first,
         p.xw,
         p.x_planes * h.x * p.xw,
         place(x_first, p.x_shift),
         p.x_pitch};
  return t;
}

template <class Codec>
RG_DEVICE void stage_forward(const ForwardColumns& p, const ForwardTile& t, uint32_t thread, uint32_t threads,
                             const typename Codec::Type* x, float* staged) {
  const int runs = t.x.planes == t.layers ? 1 : t.layers;
  PoolLines lines = t.x;
  for (int i = 0; i < runs; ++i) {
    stage_lines<Codec>(lines, thread, threads, x, staged);
    lines.first += p.windows.axes[1].x * p.xw;
    lines.at += p.x_layer;
  }
}

// Windows that lie side by side. What is read beside a line is masked: bits that are anything, but no
// numbers.
template <class Codec, class Kind>
RG_DEVICE void add_strip(const ForwardColumns& p, const ForwardTile& t, int plane, int row, int strip,
                         const float* staged, typename Codec::Type* results) {
  constexpr int kM = Kind::kWindows, kN = Kind::kHeld, kRH = Kind::kReachH;
  const auto& [d, h, w] = p.windows.axes;
  const int column = strip * kM, start = (t.y_column + column) * Kind::kSW - w.pad;
  if (column >= t.y.columns) return;
  uint32_t live[kN];
  RG_UNROLL
  for (int i = 0; i < kN; ++i) live[i] = is_window(start + i, w.x) ? ~0u : 0u;
  const HeldLayers layers = layers_held(p, t.plane + plane);
  int left = least(p.cut.band, t.y.rows - row), window = t.y_row + row;
  int line = window * Kind::kSH - h.pad;
  const int end = layers.begin < layers.end ? places_of(h, window + left - 1).end : 0;
  const float* from = staged + (t.x.at + (layers.begin - t.layer) * p.x_layer + (line - t.x_row) * t.x.pitch +
                                start - t.x_column);
  typename Codec::Type* result = results + (t.y.at + (plane * t.y.rows + row) * t.y.pitch + column);
  float factors[kM], rows_of_factors = 0;  // where windows have different divisors
  RG_UNROLL
  for (int b = 0; b < kM; ++b) factors[b] = p.windows.scale;
  float sums[kRH][kM] = {};  // of the window that begins here, of the one before that, …
  int early = kRH - 1;       // windows that began before the first one
  RG_UNROLL_BY(1)
  for (;;) {
    RG_UNROLL
    for (int r = 0; r < Kind::kSH; ++r) {
      float across[kM] = {};
      if (r < Kind::kH && line >= 0 && line < end) {
        float values[kN];
        RG_UNROLL
        for (int i = 0; i < kN; ++i) values[i] = from[i];
        const float* deeper = from;
        RG_UNROLL_BY(1)
        for (int layer = layers.begin + 1; layer < layers.end; ++layer) {
          deeper += p.x_layer;
          RG_UNROLL
          for (int i = 0; i < kN; ++i) values[i] += deeper[i];
        }
        RG_UNROLL
        for (int i = 0; i < kN; ++i) values[i] = masked(values[i], live[i]);
        RG_UNROLL
        for (int b = 0; b < kM; ++b) {
          across[b] = values[b * Kind::kSW];
          RG_UNROLL
          for (int i = 1; i < Kind::kW; ++i) across[b] += values[b * Kind::kSW + i];
        }
      }
      RG_UNROLL
      for (int j = kRH - 1; j >= 0; --j) RG_UNROLL
      for (int b = 0; b < kM; ++b) {
        if (r == 0 && j == 0)
          sums[0][b] = across[b];
        else if (r + j * Kind::kSH < Kind::kH)
          sums[j][b] += across[b];
      }
      ++line;
      from += t.x.pitch;
    }
    if (early > 0) {
      --early;
    } else {
      if (!p.windows.uniform) {
        const float rows =
            static_cast<float>(count_of(d, layers.depth)) * static_cast<float>(count_of(h, window));
        if (rows != rows_of_factors) {
          RG_UNROLL
          for (int b = 0; b < kM; ++b)
            factors[b] = Codec::reciprocal(rows * static_cast<float>(count_of(w, t.y_column + column + b)));
          rows_of_factors = rows;
        }
      }
      RG_UNROLL
      for (int b = 0; b < kM; ++b)
        if (column + b < t.y.columns)
          result[b] = Codec::store(Codec::add_product(sums[kRH - 1][b], factors[b], 0.0f));
      if (--left == 0) return;
      ++window;
      result += t.y.pitch;
    }
    RG_UNROLL
    for (int j = kRH - 1; j > 0; --j) RG_UNROLL
    for (int b = 0; b < kM; ++b) sums[j][b] = sums[j - 1][b];
  }
}

// One result after the other: rows of places first, then rows, then depths.
template <class Codec>
RG_DEVICE void add_windows(const ForwardColumns& p, const ForwardTile& t, int plane, int first_row,
                           int column, const float* staged, typename Codec::Type* results) {
  const auto& [d, h, w] = p.windows.axes;
  if (column >= t.y.columns) return;
  auto channel = static_cast<uint32_t>(t.y_column + column);
  const auto window = static_cast<int>(p.channels.split(channel));
  const Places columns = places_of(w, window);
  const HeldLayers layers = layers_held(p, t.plane + plane);
  const int count = columns.end - columns.begin, end = least(first_row + p.cut.band, t.y.rows);
  for (int row = first_row; row < end; ++row) {
    const Places rows = places_of(h, t.y_row + row);
    const float* from =
        staged + (t.x.at + (layers.begin - t.layer) * p.x_layer + (rows.begin - t.x_row) * t.x.pitch +
                  (columns.begin * p.inner + static_cast<int>(channel) - t.x_column));
    float sum = 0;
    for (int layer = layers.begin; layer < layers.end; ++layer, from += p.x_layer) {
      const float* at = from;
      for (int i = rows.begin; i < rows.end; ++i, at += t.x.pitch) {
        float across = 0;
        RG_UNROLL_BY(4)
        for (int j = 0; j < count; ++j) across += at[j * p.inner];
        sum += across;
      }
    }
    const float average = p.windows.uniform ? Codec::add_product(sum, p.windows.scale, 0.0f)
                                            : sum / (static_cast<float>(count_of(d, layers.depth)) *
                                                     static_cast<float>(count_of(h, t.y_row + row)) *
                                                     static_cast<float>(count_of(w, window)));
    results[t.y.at + (plane * t.y.rows + row) * t.y.pitch + column] = Codec::store(average);
  }
}

template <class Codec, class Kind>
RG_DEVICE void add(const ForwardColumns& p, const ForwardTile& t, uint32_t thread, uint32_t threads,
                   const float* staged, typename Codec::Type* results) {
  const uint32_t items = static_cast<uint32_t>(t.y.planes) * p.bands.divisor * p.strips.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t number = item;
    uint32_t band = p.strips.split(number);
    const auto plane = static_cast<int>(p.bands.split(band)), strip = static_cast<int>(number);
    const int row = static_cast<int>(band) * p.cut.band;
    if (row >= t.y.rows) continue;
    if constexpr (Kind::kIsStrip)
      add_strip<Codec, Kind>(p, t, plane, row, strip, staged, results);
    else
      add_windows<Codec>(p, t, plane, row, strip, staged, results);
  }
}

}  // namespace retrograd::kernels::cuda
