// SPDX-License-Identifier: Apache-2.0
// What blocks and threads of staged_gather.cu and staged_grad_weight.cu do, in plain C++: kernels run it on
// the GPU, tests on the CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/depthwise_windows/staged_plan.h"

namespace retrograd::kernels::cuda {

// The lowest place of the source that results from `place` on read, beyond the edge perhaps.
RG_DEVICE inline int lowest_place(const DepthwiseAxis& a, int place) {
  if (!a.matched) return place * a.stride - a.pad;
  const int from = place + a.pad - (a.kernel - 1) * a.dilation + a.lift * a.stride;
  return static_cast<int>(a.by_stride.quotient(static_cast<uint32_t>(from))) - a.lift;
}

struct StagedBlock {
  int plane, depth, row, column;                // first results
  int source_plane;                             // of the first that is staged
  int planes, rows, columns;                    // that are there; rows of the class
  int source_depth, source_row, source_column;  // of the first that is staged
  int source_columns;
};

RG_DEVICE inline StagedBlock staged_block(const Staged& p, uint32_t number) {
  StagedBlock b;
  uint32_t rest = p.by.column_tiles.quotient(number);
  b.column = static_cast<int>(number - rest * p.by.column_tiles.divisor) * p.columns;
  uint32_t row_class = rest;
  rest = p.by.classes.split(row_class);
  uint32_t row_tile = rest;
  rest = p.by.row_tiles.split(row_tile);
  uint32_t depth_tile = rest;
  b.plane = static_cast<int>(p.by.depth_tiles.split(depth_tile)) * p.planes;
  b.source_plane = b.plane * p.sources;
  b.depth = static_cast<int>(depth_tile) * p.depths;
  const int first = static_cast<int>(row_tile) * p.rows;  // within the class
  b.row = static_cast<int>(row_class) + first * p.classes;
  b.planes = p.all_planes - b.plane < p.planes ? p.all_planes - b.plane : p.planes;
  const int left = b.row < p.h.results ? static_cast<int>(p.by.classes.quotient(
                                             static_cast<uint32_t>(p.h.results - b.row + p.classes - 1)))
                                       : 0;
  b.rows = left < p.rows ? left : p.rows;
  b.columns = p.w.results - b.column < p.columns ? p.w.results - b.column : p.columns;
  const int deep = lowest_place(p.d, b.depth);
  b.source_depth = deep < 0 ? 0 : deep;
  b.source_row = lowest_place(p.h, b.row);
  const int low = lowest_place(p.w, b.column);
  // The last column's first taps reach farthest.
  const int last = b.column + b.columns - 1;
  const int high = p.w.matched ? static_cast<int>(p.w.by_stride.quotient(
                                     static_cast<uint32_t>(last + p.w.pad + p.w.lift * p.w.stride))) -
                                     p.w.lift
                               : last * p.w.stride - p.w.pad + (p.w.kernel - 1) * p.w.dilation;
  b.source_column = low < 0 ? 0 : low;
  const int end = high + 1 < p.w.source ? high + 1 : p.w.source;
  b.source_columns = end > b.source_column ? end - b.source_column : 0;
  return b;
}

// A vector of `wide` elements on its way into shared memory, where element `to` is.
struct StagedPiece {
  enum Kind : unsigned char { kNone, kZeros, kWhole, kSome } kind;  // kSome: some lie beyond the tensor
  int to;
  int64_t from;  // may be before the tensor
};

RG_DEVICE inline int staged_pieces(const Staged& p, const StagedBlock& b) {
  return b.planes * p.sources * p.source_depths * p.source_rows * static_cast<int>(p.by.vectors.divisor);
}
// phase: elements from the boundary of 16 bytes before the tensor to its first.
RG_DEVICE inline StagedPiece staged_piece(const Staged& p, const StagedBlock& b, int wide, int phase,
                                          int number) {
  auto vector = static_cast<uint32_t>(number);
  uint32_t row = p.by.vectors.split(vector);
  StagedPiece piece{StagedPiece::kNone, static_cast<int>(row) * p.row_room + static_cast<int>(vector) * wide,
                    0};
  uint32_t depth = p.by.source_rows.quotient(row);
  row -= depth * p.by.source_rows.divisor;
  const uint32_t plane = p.by.source_depths.split(depth);
  const int d = b.source_depth + static_cast<int>(depth),
            h = b.source_row + static_cast<int>(row) * p.row_step;
  if (static_cast<uint32_t>(d) >= static_cast<uint32_t>(p.d.source)) return piece;  // whose taps are skipped
  if (static_cast<uint32_t>(h) >= static_cast<uint32_t>(p.h.source)) {
    piece.kind = StagedPiece::kZeros;
    return piece;
  }
  const uint32_t start =
      ((static_cast<uint32_t>(b.source_plane) + plane * static_cast<uint32_t>(p.plane_step)) *
           static_cast<uint32_t>(p.d.source) +
       static_cast<uint32_t>(d)) *
          static_cast<uint32_t>(p.h.source) * static_cast<uint32_t>(p.w.source) +
      static_cast<uint32_t>(h) * static_cast<uint32_t>(p.w.source) + static_cast<uint32_t>(b.source_column);
  const int ahead =
      static_cast<int>((start + static_cast<uint32_t>(phase)) & static_cast<uint32_t>(wide - 1));
  const int first = static_cast<int>(vector) * wide - ahead;  // of the row's columns
  if (first >= b.source_columns) return piece;
  piece.from = int64_t{start} + first;
  piece.kind =
      piece.from >= 0 && piece.from + wide <= int64_t{p.total} ? StagedPiece::kWhole : StagedPiece::kSome;
  return piece;
}

// Where weight number i of a block goes, its offset in the tensor, and whether there is one.
struct StagedWeight {
  int64_t from;
  bool live;
};
RG_DEVICE inline StagedWeight staged_weight(const Staged& p, const StagedBlock& b, int number) {
  const auto at_once = static_cast<uint32_t>(p.results_at_once);  // 1, 2 or 4
  const uint32_t m = static_cast<uint32_t>(number) & (at_once - 1);
  uint32_t tap = static_cast<uint32_t>(number) / at_once;
  uint32_t source = p.by.taps.split(tap);
  const uint32_t plane = p.by.sources.split(source);
  if (static_cast<int>(plane) >= b.planes || static_cast<int>(m) >= p.results) return {0, false};
  auto group = static_cast<uint32_t>(b.plane) + plane;
  p.by.groups.split(group);
  return {p.kernels.offset(group, m, source, tap), true};
}

// Rows of a chunk in shared memory, and which of them lie inside the source.
template <int kRows>
RG_DEVICE inline void find_staged_rows(const Staged& p, int row, int place, uint32_t ahead, int mask,
                                       int (&offsets)[kRows], uint32_t& live) {
  const uint32_t to_next = static_cast<uint32_t>(p.row_step) * static_cast<uint32_t>(p.w.source);
  live = 0;
  RG_UNROLL
  for (int m = 0; m < kRows; ++m) {
    int r = row + m * p.spread;
    if (r >= p.source_rows) r = p.source_rows - 1;  // of a result that is not there
    offsets[m] = r * p.row_room +
                 static_cast<int>((ahead + static_cast<uint32_t>(r) * to_next) & static_cast<uint32_t>(mask));
    const int at = place + m * p.spread * p.row_step;
    if (static_cast<uint32_t>(at) < static_cast<uint32_t>(p.h.source)) live |= 1u << m;
  }
}

// Of plane number `plane` of the block at `depth` of the source: elements from a boundary to its first row.
RG_DEVICE inline uint32_t staged_ahead(const Staged& p, const StagedBlock& b, int plane, int depth,
                                       int phase) {
  return ((static_cast<uint32_t>(b.source_plane + plane * p.plane_step) * static_cast<uint32_t>(p.d.source) +
           static_cast<uint32_t>(depth)) *
              static_cast<uint32_t>(p.h.source) +
          static_cast<uint32_t>(b.source_row)) *
             static_cast<uint32_t>(p.w.source) +
         static_cast<uint32_t>(b.source_column + phase);
}

template <class T>
struct StagedChunk {
  const T* tile;              // of the plane and depth, at the first live column
  const float* weights;       // of the chunk's first tap, the first live column's
  int row, place;             // staged, and of the source
  uint32_t ahead;             // elements before row 0 of the tile
  int columns, to_column;     // live taps along the row; elements between what they read
  int to_tap, to_tap_column;  // floats of weights from tap to tap, along columns and rows
};

// kGuard: some weight is not finite, and must not meet the zeros that stand for rows beyond the edge.
template <int kTaps, int kV, int kM, bool kGuard, class T, class Load>
RG_DEVICE inline void add_staged_chunk(const Staged& p, const StagedChunk<T>& c, int mask, const Load& load,
                                       float (&sums)[kV][kM]) {
  constexpr int kRows = kV + kTaps - 1;
  int offsets[kRows];
  uint32_t live;
  find_staged_rows(p, c.row, c.place, c.ahead, mask, offsets, live);
  const T* tile = c.tile;
  const float* weights = c.weights;
  RG_UNROLL_BY(1)
  for (int column = 0; column < c.columns; ++column, tile += c.to_column, weights += c.to_tap_column) {
    float values[kRows], of_taps[kTaps][kM];
    RG_UNROLL
    for (int m = 0; m < kRows; ++m) values[m] = load(tile + offsets[m]);
    RG_UNROLL
    for (int j = 0; j < kTaps; ++j) RG_UNROLL
    for (int k = 0; k < kM; ++k) of_taps[j][k] = weights[j * c.to_tap + k];
    RG_UNROLL
    for (int n = 0; n < kTaps * kV * kM; ++n) {
      const int j = n / (kV * kM), v = n / kM % kV, k = n % kM;
      if (!kGuard || (live >> (v + j) & 1) != 0) sums[v][k] = fmaf(values[v + j], of_taps[j][k], sums[v][k]);
    }
  }
}

struct StagedItem {
  int plane, depth, row, column;  // of the block; row: the first of kV
  bool there;
};
template <int kV>
RG_DEVICE inline StagedItem staged_item(const Staged& p, const StagedBlock& b, uint32_t number) {
  StagedItem item;
  uint32_t slot = p.by.columns.split(number);
  item.column = static_cast<int>(number);
  uint32_t depth = p.by.slots.split(slot);
  item.plane = static_cast<int>(p.by.depths.split(depth));
  item.depth = static_cast<int>(depth);
  const uint32_t tile = p.by.spacing.split(slot);
  item.row = static_cast<int>(slot) + static_cast<int>(tile) * kV * p.spacing;
  item.there = item.column < b.columns && item.row < b.rows && item.plane < b.planes &&
               b.depth + item.depth < p.d.results;
  return item;
}

// The sums of an item. tile: what is staged; phase as above; mask: elements of a vector less one.
template <int kV, int kM, bool kGuard, class T, class Load>
RG_DEVICE void gather_staged(const Staged& p, const StagedBlock& b, const StagedItem& item, const T* tile,
                             const float* weights, int phase, int mask, const Load& load,
                             float (&sums)[kV][kM]) {
  const Taps of_d = taps_at(p.d, b.depth + item.depth), of_h = taps_at(p.h, b.row + item.row * p.classes),
             of_w = taps_at(p.w, b.column + item.column);
  const Span d = live_taps(p.d, of_d), w = live_taps(p.w, of_w);
  const int kw = p.w.kernel, kh = p.h.kernel;
  StagedChunk<T> c;
  c.columns = w.end - w.begin;
  if (c.columns <= 0) return;
  c.to_column = p.w.step;
  c.to_tap = of_h.apart * kw * kM;
  c.to_tap_column = of_w.apart * kM;
  const int first_row = p.split ? item.row : of_h.base - b.source_row;
  const int column = of_w.base + w.begin * p.w.step - b.source_column;
  const int first_tap = of_w.first + w.begin * of_w.apart;
  for (int s = 0; s < p.sources; ++s) {
    const int plane = item.plane * p.sources + s;
    for (int jd = d.begin; jd < d.end; ++jd) {
      const int place = of_d.base + jd * p.d.step;
      const int depth = place - b.source_depth;
      const float* const of_taps =
          weights + (plane * p.taps + (of_d.first + jd * of_d.apart) * kh * kw + first_tap) * kM;
      c.tile = tile + (plane * p.source_depths + depth) * p.source_rows * p.row_room + column;
      c.ahead = staged_ahead(p, b, plane, place, phase);
      for (int j = 0; j < of_h.count; j += p.chunk) {
        c.row = first_row + j * p.tap_rows;
        c.place = of_h.base + j * p.h.step;
        c.weights = of_taps + (of_h.first + j * of_h.apart) * kw * kM;
        const int left = p.chunk == 1 ? 1 : of_h.count - j;
        if (left == 1)
          add_staged_chunk<1, kV, kM, kGuard>(p, c, mask, load, sums);
        else if (left == 2)
          add_staged_chunk<2, kV, kM, kGuard>(p, c, mask, load, sums);
        else if (left == 3)
          add_staged_chunk<3, kV, kM, kGuard>(p, c, mask, load, sums);
        else
          add_staged_chunk<kStagedChunk, kV, kM, kGuard>(p, c, mask, load, sums);
      }
    }
  }
}

// Of the result of row v and channel k of an item.
RG_DEVICE inline uint32_t staged_result(const Staged& p, const StagedBlock& b, const StagedItem& item, int v,
                                        int k) {
  const auto row = static_cast<uint32_t>(b.row + (item.row + v * p.spacing) * p.classes);
  return ((static_cast<uint32_t>((b.plane + item.plane) * p.results + k) *
               static_cast<uint32_t>(p.d.results) +
           static_cast<uint32_t>(b.depth + item.depth)) *
              static_cast<uint32_t>(p.h.results) +
          row) *
             static_cast<uint32_t>(p.w.results) +
         static_cast<uint32_t>(b.column + item.column);
}

// A block of grad_weight: its pair of channels, its first tile of taps and its boxes.
struct WeightBlock {
  int pair, x_channel, y_channel, first_tile;
  uint32_t part, begin, end;
};
RG_DEVICE inline WeightBlock weight_block(const StagedWeights& w, uint32_t number) {
  WeightBlock block;
  uint32_t rest = w.by_tile_groups.split(number);
  block.first_tile = static_cast<int>(number) * w.tiles_a_block;
  block.part = w.by_pairs.split(rest);
  block.pair = static_cast<int>(rest);
  block.x_channel = static_cast<int>(w.by_x.quotient(rest));
  block.y_channel = static_cast<int>(w.by_y.quotient(rest));
  block.begin = block.part * w.boxes_a_part;
  block.end = block.begin + w.boxes_a_part < w.boxes ? block.begin + w.boxes_a_part : w.boxes;
  return block;
}
// As staged_block, of the images of one channel of x.
RG_DEVICE inline StagedBlock weight_box(const StagedWeights& w, const WeightBlock& block, uint32_t box) {
  StagedBlock b = staged_block(w.staged, box);
  b.source_plane = b.plane * w.x_channels + block.x_channel;
  return b;
}

// rows <= 0: there is none.
RG_DEVICE inline TapBox tap_box(const StagedWeights& w, int number) {
  const Staged& p = w.staged;
  auto column = static_cast<uint32_t>(number);
  uint32_t row = w.by_column_chunks.split(column);
  uint32_t row_class = w.by_row_chunks.split(row);
  const uint32_t depth = w.by_row_classes.split(row_class);
  TapBox t;
  t.depth = static_cast<int>(depth);
  const int first = static_cast<int>(row) * w.chunk_rows;
  t.first_row = static_cast<int>(row_class) + first * w.rows_apart;
  const int all = (p.h.kernel - static_cast<int>(row_class) + w.rows_apart - 1) / w.rows_apart;
  t.rows = t.depth >= p.d.kernel ? 0 : all - first < w.chunk_rows ? all - first : w.chunk_rows;
  t.first_column = static_cast<int>(column) * w.chunk_columns;
  t.columns = p.w.kernel - t.first_column < w.chunk_columns ? p.w.kernel - t.first_column : w.chunk_columns;
  return t;
}

// What the taps of a tile share at an item.
template <class T>
struct WeightRows {
  const T* tile;           // of the plane and depth, at the column that the first tap reads
  int row, place;          // that the first result reads with the first tap: staged, and of the source
  uint32_t ahead;          // elements before row 0 of the tile
  int column;              // of the source, that the first tap reads
  int columns, to_column;  // taps along the row; elements between what they read
};

template <int kTaps, int kV, class T, class Load>
RG_DEVICE inline void add_weight_rows(const Staged& p, const WeightRows<T>& c, int mask, const Load& load,
                                      const float (&of_y)[kV], float (&sums)[kTapRows][kTapColumns]) {
  constexpr int kRows = kV + kTaps - 1;
  int offsets[kRows];
  uint32_t live;
  find_staged_rows(p, c.row, c.place, c.ahead, mask, offsets, live);
  RG_UNROLL
  for (int i = 0; i < kTapColumns; ++i) {
    if (i >= c.columns) break;
    const int at = i * c.to_column;
    if (static_cast<uint32_t>(c.column + at) >= static_cast<uint32_t>(p.w.source)) continue;
    float values[kRows];
    RG_UNROLL
    for (int m = 0; m < kRows; ++m) values[m] = load(c.tile + offsets[m] + at);
    RG_UNROLL
    for (int n = 0; n < kTaps * kV; ++n) {
      const int j = n / kV, v = n % kV;
      sums[j][i] = fmaf(values[v + j], of_y[v], sums[j][i]);
    }
  }
}

// What an item reads of y: zeros for places beyond the box. y: the plane of the box's first image.
template <int kV, class T, class Load>
RG_DEVICE void load_weight_y(const Staged& p, const StagedBlock& b, const StagedItem& item, const T* y,
                             int64_t image_pitch, const Load& load, float (&of_y)[kV]) {
  const int depth = b.depth + item.depth, row = b.row + item.row * p.classes, column = b.column + item.column;
  const T* const from =
      y + item.plane * image_pitch + (int64_t{depth} * p.h.results + row) * p.w.results + column;
  const int pitch = p.spacing * p.classes * p.w.results;
  RG_UNROLL
  for (int v = 0; v < kV; ++v)
    of_y[v] = item.there && item.row + v * p.spacing < b.rows ? load(from + int64_t{v} * pitch) : 0.0f;
}

// Adds the terms of an item. Rows beyond the edge of x, and the zeros of y, are multiplied: add_parts repairs
// what they make NaN.
template <int kV, class T, class Load>
RG_DEVICE void weigh_staged(const Staged& p, const StagedBlock& b, const StagedItem& item, const TapBox& taps,
                            const float (&of_y)[kV], const T* tile, int phase, int mask, const Load& load,
                            float (&sums)[kTapRows][kTapColumns]) {
  const int place = (b.depth + item.depth) * p.d.stride - p.d.pad + taps.depth * p.d.dilation;
  if (static_cast<uint32_t>(place) >= static_cast<uint32_t>(p.d.source)) return;
  WeightRows<T> c;
  c.place = (b.row + item.row * p.classes) * p.h.stride - p.h.pad + taps.first_row * p.h.dilation;
  c.row = p.split ? item.row + taps.first_row : c.place - b.source_row;
  c.ahead = staged_ahead(p, b, item.plane, place, phase);
  c.column = (b.column + item.column) * p.w.stride - p.w.pad + taps.first_column * p.w.dilation;
  c.columns = taps.columns;
  c.to_column = p.w.dilation;
  c.tile = tile + (item.plane * p.source_depths + place - b.source_depth) * p.source_rows * p.row_room +
           c.column - b.source_column;
  if (taps.rows == 1)
    add_weight_rows<1>(p, c, mask, load, of_y, sums);
  else if (taps.rows == 2)
    add_weight_rows<2>(p, c, mask, load, of_y, sums);
  else if (taps.rows == 3)
    add_weight_rows<3>(p, c, mask, load, of_y, sums);
  else if (taps.rows == 4)
    add_weight_rows<4>(p, c, mask, load, of_y, sums);
  else
    add_weight_rows<kTapRows>(p, c, mask, load, of_y, sums);
}

// Of the sum of a tile's row j and column i, within a part.
RG_DEVICE inline int64_t staged_weight_number(const StagedWeights& w, const WeightBlock& block,
                                              const TapBox& taps, int j, int i) {
  const Staged& p = w.staged;
  const int row = taps.first_row + j * w.rows_apart;
  return int64_t{block.pair} * p.taps + (taps.depth * p.h.kernel + row) * p.w.kernel + taps.first_column + i;
}

}  // namespace retrograd::kernels::cuda
