// SPDX-License-Identifier: Apache-2.0
// What the threads of a block of pool_columns do, phase by phase; a barrier lies between two of them. Each
// phase is what one thread does; the test runs them for all threads of all blocks on the CPU.
//
//   stage   the lines of y whose windows hold the tile, to FP32
//   divide  where windows have different divisors, and depths or no strips
//   walk    a thread a strip of neighbouring columns, downwards: for each line of y the sums across the
//           windows that hold the columns, over the depths that hold the plane; for each place the sum of the
//           last few of those
//   flush   from shared memory to x
#pragma once

#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling/pool_lines.h"
#include "kernels/cuda/pooling/pool_strips.h"

namespace retrograd::kernels::cuda {

inline WalkKey walk_key(const PoolColumns& p) {
  const auto& [d, h, w] = p.windows.axes;
  return {w.kernel, w.stride, h.kernel, h.stride, p.inner};
}

struct PoolColumnsTile {
  int plane, planes, row, rows, column, columns;              // of x
  int y_layer, y_layers, y_row, y_rows, y_column, y_columns;  // what is staged; layers: planes of y
  int y_at, x_at;  // where the first elements lie in shared memory: as far behind 16 bytes as in the tensors
};

struct PoolLayers {
  int begin, end;
};
// The planes of y whose windows hold a plane of x.
RG_DEVICE inline PoolLayers layers_holding(const PoolColumns& p, int plane) {
  if (!p.deep) return {plane, plane + 1};
  const WindowAxis& a = p.windows.axes[0];
  auto depth = static_cast<uint32_t>(plane);
  const int image = static_cast<int>(p.depths.split(depth)) * a.y;
  const int shifted = static_cast<int>(depth) + a.pad;
  const int begin = shifted < a.kernel ? 0 : static_cast<int>(p.strides[0].quotient(shifted - a.kernel)) + 1;
  return {image + begin, image + least(static_cast<int>(p.strides[0].quotient(shifted)) + 1, a.y)};
}

RG_DEVICE inline PoolColumnsTile columns_tile(const PoolColumns& p, uint32_t block) {
  PoolColumnsTile t;
  uint32_t column = block;
  uint32_t row = p.column_tiles.split(column);
  t.plane = static_cast<int>(p.row_tiles.split(row)) * p.cut.planes;
  t.planes = least(p.cut.planes, p.planes - t.plane);
  t.row = static_cast<int>(row) * p.cut.rows;
  t.rows = least(p.cut.rows, p.windows.axes[1].x - t.row);
  t.column = static_cast<int>(column) * p.cut.columns;
  t.columns = least(p.cut.columns, p.xw - t.column);
  t.y_layer = layers_holding(p, t.plane).begin;
  t.y_layers = most(layers_holding(p, t.plane + t.planes - 1).end - t.y_layer, 0);
  const auto staged = [&](int axis, int begin, int last, int reach, int& first, int& count) {
    const WindowAxis& a = p.windows.axes[axis];
    const int before = static_cast<int>(p.strides[axis].quotient(begin + a.pad)) - (reach - 1);
    const int end = least(a.y, static_cast<int>(p.strides[axis].quotient(last + a.pad)) + 1);
    first = before > 0 ? before : 0;
    count = end > first ? end - first : 0;
  };
  t.y_row = 0;
  t.y_rows = p.windows.axes[1].y;
  if (p.cut.planes == 1) staged(1, t.row, t.row + t.rows - 1, p.reach_h, t.y_row, t.y_rows);
  t.y_column = 0;
  t.y_columns = p.yw;
  if (!p.whole) {
    staged(2, static_cast<int>(p.channels.quotient(t.column)),
           static_cast<int>(p.channels.quotient(t.column + t.columns - 1)), p.reach_w, t.y_column,
           t.y_columns);
    t.y_column *= p.inner;
    t.y_columns *= p.inner;
  }
  const uint32_t mask = static_cast<uint32_t>(p.vector) - 1;
  const auto at = [&](int plane, int size, int line, int width, int first, int shift) {
    return static_cast<int>((static_cast<uint32_t>(plane) * static_cast<uint32_t>(size) +
                             static_cast<uint32_t>(line * width + first + shift)) &
                            mask);
  };
  t.y_at = at(t.y_layer, p.y_plane, t.y_row, p.yw, t.y_column, p.y_shift);
  t.x_at = at(t.plane, p.x_plane, t.row, p.xw, t.column, p.x_shift);
  return t;
}

// Whole planes are one run, whatever layers they are; parts of several layers are runs of their own.
template <class Codec>
RG_DEVICE void stage(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                     const typename Codec::Type* y, float* staged) {
  const bool one_run = p.cut.planes > 1 || !p.deep;
  const int calls = one_run ? 1 : t.y_layers;
  for (int i = 0; i < calls; ++i) {
    const int first = (t.y_layer + i) * p.y_plane + t.y_row * p.yw + t.y_column;
    stage_lines<Codec>({p.whole, one_run ? t.y_layers : 1, t.y_rows, t.y_columns, first, p.yw, p.y_total,
                        t.y_at + i * p.y_staged, p.y_line},
                       thread, threads, y, staged);
  }
}

RG_DEVICE inline void divide(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread,
                             uint32_t threads, float* staged) {
  const uint32_t items =
      static_cast<uint32_t>(t.y_layers) * p.staged_lines.divisor * p.staged_columns.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t column = item;
    uint32_t line = p.staged_columns.split(column);
    const auto layer = static_cast<int>(p.staged_lines.split(line));
    if (static_cast<int>(line) >= t.y_rows || static_cast<int>(column) >= t.y_columns) continue;
    auto depth = static_cast<uint32_t>(t.y_layer + layer);
    p.y_depths.split(depth);
    const int window = static_cast<int>(p.channels.quotient(static_cast<uint32_t>(t.y_column) + column));
    const float divisor = static_cast<float>(count_of(p.windows.axes[0], static_cast<int>(depth))) *
                          static_cast<float>(count_of(p.windows.axes[1], t.y_row + static_cast<int>(line))) *
                          static_cast<float>(count_of(p.windows.axes[2], window));
    staged[t.y_at + layer * p.y_staged + static_cast<int>(line) * p.y_line + static_cast<int>(column)] /=
        divisor;
  }
}

// Columns of x that lie side by side, the first one where a window begins; those outside the tile are left
// out. What is read beside a line is masked: bits that are anything, but no numbers.
template <class Codec, class Kind>
RG_DEVICE void walk_strip(const PoolColumns& p, const PoolColumnsTile& t, int plane, int row, int strip,
                          const float* staged, typename Codec::Type* results) {
  using T = typename Codec::Type;
  constexpr int kC = Kind::kColumns, kN = Kind::kLoads, kRW = Kind::kReachW, kRH = Kind::kReachH;
  const WindowAxis &h = p.windows.axes[1], &w = p.windows.axes[2];
  const int origin = t.column - (t.column + w.pad) % Kind::kSW + strip * kC;
  const int first = (origin + w.pad) / Kind::kSW - (kRW - 1);  // the first window
  uint32_t live[kN], kept = 0;
  RG_UNROLL
  for (int i = 0; i < kN; ++i) live[i] = is_window(first + i, w.y) ? ~0u : 0u;
  RG_UNROLL
  for (int c = 0; c < kC; ++c) kept |= is_window(origin + c - t.column, t.columns) ? 1u << c : 0u;
  if (kept == 0) return;
  const PoolLayers layers = layers_holding(p, t.plane + plane);
  int within = (t.row + row + h.pad) % Kind::kSH, window = (t.row + row + h.pad) / Kind::kSH;
  const float* line = staged + (t.y_at + (layers.begin - t.y_layer) * p.y_staged +
                                (window - t.y_row) * p.y_line + first - t.y_column);
  float factors[kN] = {}, rows_of_factors = 0;  // where windows have different divisors
  const auto across = [&](int number, const float* from, float(&sums)[kC]) {
    float values[kN] = {};
    if (is_window(number, h.y) && layers.begin < layers.end) {
      RG_UNROLL
      for (int i = 0; i < kN; ++i) values[i] = from[i];
      RG_UNROLL_BY(1)
      for (int layer = layers.begin + 1; layer < layers.end; ++layer) {
        from += p.y_staged;
        RG_UNROLL
        for (int i = 0; i < kN; ++i) values[i] += from[i];
      }
    }
    RG_UNROLL
    for (int i = 0; i < kN; ++i) values[i] = masked(values[i], live[i]);
    if (!p.windows.uniform && !p.deep) {
      const auto rows = static_cast<float>(count_of(h, number));
      if (rows != rows_of_factors) {
        RG_UNROLL
        for (int i = 0; i < kN; ++i)
          factors[i] = Codec::reciprocal(rows * static_cast<float>(count_of(w, first + i)));
        rows_of_factors = rows;
      }
      RG_UNROLL
      for (int i = 0; i < kN; ++i) values[i] *= factors[i];
    }
    RG_UNROLL
    for (int c = 0; c < kC; ++c) {  // windows that hold a column, from the first to the last
      sums[c] = 0;
      bool begun = false;
      RG_UNROLL
      for (int j = kRW - 1; j >= 0; --j)
        if (c % Kind::kSW + j * Kind::kSW < Kind::kW) {
          const float value = values[c / Kind::kSW + kRW - 1 - j];
          sums[c] = begun ? sums[c] + value : value;
          begun = true;
        }
    }
  };
  float last[kRH][kC] = {};  // [k]: the sum of the last k lines
  const auto push = [&](const float(&sums)[kC]) {
    RG_UNROLL
    for (int k = kRH - 1; k > 0; --k) RG_UNROLL
    for (int c = 0; c < kC; ++c) last[k][c] = k > 1 ? last[k - 1][c] + sums[c] : sums[c];
  };
  RG_UNROLL_BY(1)
  for (int j = kRH - 1; j > 0; --j) {
    float sums[kC];
    across(window - j, line - j * p.y_line, sums);
    push(sums);
  }
  T* result = results + (t.x_at + plane * p.x_plane + row * p.x_line + (origin - t.column));
  int left = least(p.cut.band, t.rows - row);
  RG_UNROLL_BY(1)
  for (;; ++window, line += p.y_line) {
    constexpr int kAll = Kind::kH - (kRH - 1) * Kind::kSH;  // rows that kRH windows hold
    float sums[kC];
    across(window, line, sums);
    T all[kC], less[kC];
    RG_UNROLL
    for (int c = 0; c < kC; ++c) {
      const float of_all = kRH > 1 ? last[kRH - 1][c] + sums[c] : sums[c];
      const float of_less = kRH > 2 ? last[kRH > 2 ? kRH - 2 : 0][c] + sums[c] : kRH == 2 ? sums[c] : 0.0f;
      all[c] = Codec::store(Codec::add_product(of_all, p.windows.scale, 0.0f));  // no negative zeros
      if (kAll < Kind::kSH) less[c] = Codec::store(Codec::add_product(of_less, p.windows.scale, 0.0f));
    }
    RG_UNROLL
    for (int r = 0; r < Kind::kSH; ++r) {
      if (r < within || left == 0) continue;
      if (kept == (1u << kC) - 1) {
        RG_UNROLL
        for (int c = 0; c < kC; ++c) result[c] = r < kAll ? all[c] : less[c];
      } else {
        RG_UNROLL
        for (int c = 0; c < kC; ++c)
          if ((kept >> c & 1u) != 0) result[c] = r < kAll ? all[c] : less[c];
      }
      result += p.x_line;
      --left;
    }
    if (left == 0) return;
    within = 0;
    push(sums);
  }
}

// Bit j: the j-th window before the last one that begins at a column or before it holds it.
template <int kReach>
RG_DEVICE inline uint32_t windows_held(const PoolColumns& p, int window, int within) {
  const WindowAxis& a = p.windows.axes[2];
  uint32_t held = 0;
  RG_UNROLL
  for (int j = 0; j < kReach; ++j)
    if (j < p.reach_w && within + j * a.stride < a.kernel && window - j >= 0 && window - j < a.y)
      held |= 1u << j;
  return held;
}

// From the first window to the last; line: where the first one's value would be.
template <int kReach>
RG_DEVICE inline float across(const PoolColumns& p, uint32_t held, const float* line) {
  float sum = 0;
  RG_UNROLL
  for (int j = kReach - 1; j >= 0; --j, line += p.inner)
    if ((held >> j & 1u) != 0) sum += *line;
  return sum;
}

template <class Codec, class Kind>
RG_DEVICE void walk_column(const PoolColumns& p, const PoolColumnsTile& t, int plane, int row, int column,
                           const float* staged, typename Codec::Type* results) {
  using T = typename Codec::Type;
  constexpr int kReach = Kind::kReach;
  const WindowAxis& a = p.windows.axes[1];
  auto channel = static_cast<uint32_t>(t.column + column);
  uint32_t within_w = p.channels.split(channel) + static_cast<uint32_t>(p.windows.axes[2].pad);
  const auto window_w = static_cast<int>(p.strides[2].split(within_w));
  const uint32_t held = windows_held<kReach>(p, window_w, static_cast<int>(within_w));
  const PoolLayers layers = layers_holding(p, t.plane + plane);
  auto within = static_cast<uint32_t>(t.row + row + a.pad);
  auto window = static_cast<int>(p.strides[1].split(within));
  const int first = (window_w - (kReach - 1)) * p.inner + static_cast<int>(channel) - t.y_column;
  const float* line =
      staged + (t.y_at + (layers.begin - t.y_layer) * p.y_staged + (window - t.y_row) * p.y_line + first);
  const auto line_sum = [&](int number, const float* at) {
    float sum = 0;
    if (!is_window(number, a.y)) return sum;
    for (int layer = layers.begin; layer < layers.end; ++layer, at += p.y_staged)
      sum += across<kReach>(p, held, at);
    return sum;
  };
  float sums[kReach];  // of the window that begins here or just before, of the one before that, …
  RG_UNROLL
  for (int j = 1; j < kReach; ++j) sums[j] = j < p.reach_h ? line_sum(window - j, line - j * p.y_line) : 0.0f;
  T* result = results + (t.x_at + plane * p.x_plane + row * p.x_line + column);
  int left = least(p.cut.band, t.rows - row);
  for (;; ++window, line += p.y_line) {
    sums[0] = line_sum(window, line);
    float less = 0, all = 0;
    RG_UNROLL
    for (int j = kReach - 1; j >= 0; --j) {
      if (j < p.reach_h - 1) less += sums[j];
      if (j < p.reach_h) all += sums[j];
    }
    const T of_all = Codec::store(Codec::add_product(all, p.windows.scale, 0.0f));
    const T of_less = Codec::store(Codec::add_product(less, p.windows.scale, 0.0f));
    int rows = least(a.stride - static_cast<int>(within), left);
    left -= rows;
    int held_by_all = least(p.split_h - static_cast<int>(within), rows);
    rows -= held_by_all > 0 ? held_by_all : 0;
    RG_UNROLL_BY(1)
    for (; held_by_all > 0; --held_by_all, result += p.x_line) *result = of_all;
    RG_UNROLL_BY(1)
    for (; rows > 0; --rows, result += p.x_line) *result = of_less;
    if (left == 0) return;
    within = 0;
    RG_UNROLL
    for (int j = kReach - 1; j > 0; --j) sums[j] = sums[j - 1];
  }
}

template <class Codec, class Kind>
RG_DEVICE void walk(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                    const float* staged, typename Codec::Type* results) {
  const uint32_t items = static_cast<uint32_t>(t.planes) * p.bands.divisor * p.strips.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t number = item;
    uint32_t band = p.strips.split(number);
    const auto plane = static_cast<int>(p.bands.split(band)), strip = static_cast<int>(number);
    const int row = static_cast<int>(band) * p.cut.band;
    if (row >= t.rows) continue;
    if constexpr (Kind::kIsStrip)
      walk_strip<Codec, Kind>(p, t, plane, row, strip, staged, results);
    else if (strip < t.columns)
      walk_column<Codec, Kind>(p, t, plane, row, strip, staged, results);
  }
}

template <class T>
RG_DEVICE void flush(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                     const T* results, T* x) {
  const int first = t.plane * p.x_plane + t.row * p.xw + t.column;
  const PoolLines lines{p.whole, t.planes, t.rows, t.columns, first, p.xw, p.x_total, t.x_at, p.x_line};
  flush_lines(lines, thread, threads, results, x);
}

}  // namespace retrograd::kernels::cuda
