// SPDX-License-Identifier: Apache-2.0
// What the threads of a block of pool_columns do, phase by phase; a barrier lies between two of them. Each
// phase is what one thread does; the test runs them for all threads of all blocks on the CPU.
//
//   stage   lines of y that hold the tile, summed over the depths that hold its planes, to FP32
//   divide  where windows have different divisors
//   walk    a thread a column: for each line of y the sum across the windows that hold the column, and for
//           each place the sum of the last few of those
//   flush   from shared memory to x
#pragma once

#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling/pool_lines.h"

namespace retrograd::kernels::cuda {

struct PoolColumnsTile {
  int plane, planes, row, rows, column, columns;  // of x
  int y_row, y_rows, y_column, y_columns;         // what is staged
  int y_at, x_at;  // where the first elements lie in shared memory: as far behind 16 bytes as in the tensors
};

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
  const uint32_t image = p.depths.quotient(t.plane);
  t.y_at = static_cast<int>(
      (image * p.windows.axes[0].y * p.y_plane + t.y_row * p.yw + t.y_column + p.y_shift) & mask);
  t.x_at = static_cast<int>(
      (static_cast<uint32_t>(t.plane) * p.x_plane + t.row * p.xw + t.column + p.x_shift) & mask);
  return t;
}

// A run a plane, or a line of one, summed over the depths whose windows hold the plane.
template <class Codec, int kV>
RG_DEVICE void stage_deep(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                          const typename Codec::Type* y, float* staged) {
  using T = typename Codec::Type;
  const WindowAxis& a = p.windows.axes[0];
  const PoolRuns runs = p.whole ? runs_of(t.planes, t.y_rows * p.yw, thread, threads)
                                : runs_of(t.y_rows, t.y_columns, thread, threads);
  for (auto run = static_cast<int>(runs.run); run < runs.count; run += static_cast<int>(runs.run_step)) {
    auto depth = static_cast<uint32_t>(t.plane + (p.whole ? run : 0));
    const auto image = static_cast<int>(p.depths.split(depth));
    const int shifted = static_cast<int>(depth) + a.pad;
    const int begin =
        shifted < a.kernel ? 0 : static_cast<int>(p.strides[0].quotient(shifted - a.kernel)) + 1;
    const int end = least(static_cast<int>(p.strides[0].quotient(shifted)) + 1, a.y);
    const int at = t.y_at + run * (p.whole ? p.y_staged : p.y_line), before = at & (kV - 1);
    const int from = image * a.y * p.y_plane + (t.y_row + (p.whole ? 0 : run)) * p.yw + t.y_column - before;
    for (int n = static_cast<int>(runs.chunk) * kV; n < runs.length + before;
         n += static_cast<int>(runs.chunk_step) * kV) {
      float sums[kV] = {};
      for (int od = begin; od < end; ++od) {
        const int layer = from + od * p.y_plane + n;
        PoolChunk<T, kV> read{};
        if (is_inside<kV>(layer, p.y_total)) {
          read = *reinterpret_cast<const PoolChunk<T, kV>*>(y + layer);
        } else {
          RG_UNROLL
          for (int i = 0; i < kV; ++i)
            if (n + i >= before && n + i < runs.length + before) read.values[i] = y[layer + i];
        }
        const float divisor = p.windows.uniform ? 1.0f : static_cast<float>(count_of(a, od));
        RG_UNROLL
        for (int i = 0; i < kV; ++i) {
          const float value = Codec::load(read.values[i]);
          sums[i] += p.windows.uniform ? value : value / divisor;
        }
      }
      RG_UNROLL
      for (int i = 0; i < kV; ++i) staged[at - before + n + i] = sums[i];
    }
  }
}

template <class Codec>
RG_DEVICE void stage(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                     const typename Codec::Type* y, float* staged) {
  constexpr int kWide = 16 / sizeof(typename Codec::Type);
  if (!p.deep) {
    const int first = t.plane * p.y_plane + t.y_row * p.yw + t.y_column;
    const PoolLines lines{p.whole, t.planes, t.y_rows, t.y_columns, first, p.yw, p.y_total, t.y_at, p.y_line};
    return stage_lines<Codec>(lines, thread, threads, y, staged);
  }
  // Layers that are no whole chunks lie at different places in them.
  p.y_plane % kWide == 0 ? stage_deep<Codec, kWide>(p, t, thread, threads, y, staged)
                         : stage_deep<Codec, 1>(p, t, thread, threads, y, staged);
}

RG_DEVICE inline void divide(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread,
                             uint32_t threads, float* staged) {
  const uint32_t items = static_cast<uint32_t>(t.planes) * p.staged_lines.divisor * p.staged_columns.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t column = item;
    uint32_t line = p.staged_columns.split(column);
    const auto plane = static_cast<int>(p.staged_lines.split(line));
    if (static_cast<int>(line) >= t.y_rows || static_cast<int>(column) >= t.y_columns) continue;
    const int window = static_cast<int>(p.channels.quotient(static_cast<uint32_t>(t.y_column) + column));
    const float divisor = static_cast<float>(count_of(p.windows.axes[1], t.y_row + static_cast<int>(line))) *
                          static_cast<float>(count_of(p.windows.axes[2], window));
    staged[t.y_at + plane * p.y_staged + static_cast<int>(line) * p.y_line + static_cast<int>(column)] /=
        divisor;
  }
}

// What the compiler knows of a walk. Windows that hold a place along H: kR, or at most that many where
// they are not exact; along W at most that many. kU: the stride along H is 1, and they are exact (kE). kP:
// no channels in lines.
template <int kR, bool kE, bool kU, bool kP>
struct WalkKind {
  static constexpr int kReach = kR;
  static constexpr bool kExact = kE, kUnit = kU, kPlanes = kP;
};

// Those that are common have code of their own.
template <class Function>
void with_walk_kind(const PoolColumns& p, Function&& function) {
  const int reach = p.reach_h > p.reach_w ? p.reach_h : p.reach_w;
  if (p.reach_w <= p.reach_h && p.inner == 1) {
    if (p.strides[1].divisor == 1) {
      if (reach == 2) return function(WalkKind<2, true, true, true>{});
      if (reach == 3) return function(WalkKind<3, true, true, true>{});
      if (reach == 5) return function(WalkKind<5, true, true, true>{});
      if (reach == 7) return function(WalkKind<7, true, true, true>{});
    }
    if (reach == 1) return function(WalkKind<1, true, false, true>{});
    if (reach == 2) return function(WalkKind<2, true, false, true>{});
    if (reach == 3) return function(WalkKind<3, true, false, true>{});
    if (reach == 4) return function(WalkKind<4, true, false, true>{});
  }
  if (reach == 1) return function(WalkKind<1, true, false, false>{});
  if (reach <= 4) return function(WalkKind<4, false, false, false>{});
  if (reach <= 8) return function(WalkKind<8, false, false, false>{});
  function(WalkKind<kColumnsReach, false, false, false>{});
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
template <class Kind>
RG_DEVICE inline float across(const PoolColumns& p, uint32_t held, const float* line) {
  const int step = Kind::kPlanes ? 1 : p.inner;
  float sum = 0;
  RG_UNROLL
  for (int j = Kind::kReach - 1; j >= 0; --j, line += step)
    if ((held >> j & 1u) != 0) sum += *line;
  return sum;
}

template <class Codec, class Kind>
RG_DEVICE void walk_column(const PoolColumns& p, const PoolColumnsTile& t, int plane, int row, int column,
                           const float* staged, typename Codec::Type* results) {
  using T = typename Codec::Type;
  constexpr int kReach = Kind::kReach;
  const WindowAxis& a = p.windows.axes[1];
  const int reach = Kind::kExact ? kReach : p.reach_h;
  auto channel = static_cast<uint32_t>(t.column + column);
  uint32_t within_w =
      (Kind::kPlanes ? channel : p.channels.split(channel)) + static_cast<uint32_t>(p.windows.axes[2].pad);
  if (Kind::kPlanes) channel = 0;
  const auto window_w = static_cast<int>(p.strides[2].split(within_w));
  const uint32_t held = windows_held<kReach>(p, window_w, static_cast<int>(within_w));
  auto within = static_cast<uint32_t>(t.row + row + a.pad);
  auto window = static_cast<int>(p.strides[1].split(within));
  const int first = (window_w - (kReach - 1)) * p.inner + static_cast<int>(channel) - t.y_column;
  const float* line = staged + (t.y_at + plane * p.y_staged + (window - t.y_row) * p.y_line + first);
  const auto line_sum = [&](int number, const float* at) {
    return across<Kind>(p, static_cast<unsigned>(number) < static_cast<unsigned>(a.y) ? held : 0, at);
  };
  float sums[kReach];  // of the window that begins here or just before, of the one before that, …
  RG_UNROLL
  for (int j = 1; j < kReach; ++j) sums[j] = j < reach ? line_sum(window - j, line - j * p.y_line) : 0.0f;
  T* result = results + (t.x_at + plane * p.x_plane + row * p.x_line + column);
  int left = least(p.cut.band, t.rows - row);
  for (;; ++window, line += p.y_line) {
    sums[0] = line_sum(window, line);
    float less = 0, all = 0;
    RG_UNROLL
    for (int j = kReach - 1; j >= 0; --j) {
      if (j < reach - 1) less += sums[j];
      if (!Kind::kExact && j < reach) all += sums[j];
    }
    if (Kind::kExact) all = less + sums[kReach - 1];
    const T of_all = Codec::store(Codec::add_product(all, p.windows.scale, 0.0f));
    if constexpr (Kind::kUnit) {
      *result = of_all;
      result += p.x_line;
      if (--left == 0) return;
    } else {
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
    }
    RG_UNROLL
    for (int j = kReach - 1; j > 0; --j) sums[j] = sums[j - 1];
  }
}

template <class Codec, class Kind>
RG_DEVICE void walk(const PoolColumns& p, const PoolColumnsTile& t, uint32_t thread, uint32_t threads,
                    const float* staged, typename Codec::Type* results) {
  const uint32_t items = static_cast<uint32_t>(t.planes) * p.bands.divisor * p.tile_columns.divisor;
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t column = item;
    uint32_t band = p.tile_columns.split(column);
    const auto plane = static_cast<int>(p.bands.split(band));
    const int row = static_cast<int>(band) * p.cut.band;
    if (static_cast<int>(column) < t.columns && row < t.rows)
      walk_column<Codec, Kind>(p, t, plane, row, static_cast<int>(column), staged, results);
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
