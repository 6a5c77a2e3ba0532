// SPDX-License-Identifier: Apache-2.0
// What the threads of a block of pool_columns do, phase by phase; a barrier lies between two of them. Each
// phase is what one thread does; the test runs them for all threads of all blocks on the CPU.
//
//   stage   the places of the source that the tile's results add, as they are
//   walk    strips, a thread a few neighbouring columns, downwards: each line of the source is added over
//           depths and across once, for all results that add it; the sums of the last few lines are kept
//   down    other windows: the sums down the columns and over depths of every row of results, in FP32
//   across  other windows: results from those
//   flush   from shared memory to the result
#pragma once

#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling/pool_lines.h"
#include "kernels/cuda/pooling/pool_strips.h"

namespace retrograd::kernels::cuda {

// A tile of the result, or what is staged of the source for it. columns: elements of a line; at: where the
// first element lies in shared memory, as far behind 16 bytes as in the tensor.
struct ColumnsPart {
  int plane, planes, row, rows, column, columns, at;
};
struct ColumnsTile {
  ColumnsPart result, source;
  int step, steps, strip;  // the first of them, and how many
};

// The planes of the source that a plane of the result adds; depth: of the plane in its image; s_depth: of the
// first one.
struct ColumnsLayers {
  int begin, end, depth, s_depth;
};
template <bool kForward>
RG_DEVICE ColumnsLayers layers_of(const PoolColumns& p, int plane) {
  if (!p.deep) return {plane, plane + 1, 0, 0};
  auto depth = static_cast<uint32_t>(plane);
  const int image = static_cast<int>(p.by.depths.split(depth)) * static_cast<int>(p.by.s_depths.divisor);
  const Places places = sources_of<kForward>(p, 0, static_cast<int>(depth));
  return {image + places.begin, image + places.end, static_cast<int>(depth), places.begin};
}

template <bool kForward>
RG_DEVICE ColumnsTile columns_tile(const PoolColumns& p, uint32_t block) {
  ColumnsTile t;
  uint32_t column_tile = block;
  uint32_t row_tile = p.by.column_tiles.split(column_tile);
  t.result.plane = static_cast<int>(p.by.row_tiles.split(row_tile)) * p.cut.planes;
  t.result.planes = least(p.cut.planes, p.planes - t.result.plane);
  t.step = static_cast<int>(row_tile) * p.cut.steps;
  t.steps = least(p.cut.steps, p.steps - t.step);
  t.strip = static_cast<int>(column_tile) * p.cut.strips;
  const auto results = [](int begin, int end, int size, int& first, int& count) {
    first = most(begin, 0);
    count = least(end, size) - first;
  };
  results(t.step * p.unit_h - p.phase_h, (t.step + t.steps) * p.unit_h - p.phase_h, p.rows, t.result.row,
          t.result.rows);
  results(t.strip * p.unit_w - p.phase_w, (t.strip + p.cut.strips) * p.unit_w - p.phase_w, p.result.line,
          t.result.column, t.result.columns);
  t.source.plane = layers_of<kForward>(p, t.result.plane).begin;
  t.source.planes =
      most(layers_of<kForward>(p, t.result.plane + t.result.planes - 1).end - t.source.plane, 0);
  t.source.row = 0;
  t.source.rows = p.s_rows;
  if (t.result.rows < p.rows) {  // else one run
    t.source.row = sources_of<kForward>(p, 1, t.result.row).begin;
    t.source.rows = most(sources_of<kForward>(p, 1, t.result.row + t.result.rows - 1).end - t.source.row, 0);
  }
  t.source.column = 0;
  t.source.columns = p.source.line;
  if (!p.whole) {
    const auto place = [&](int element) {
      return static_cast<int>(p.by.channels.quotient(static_cast<uint32_t>(element)));
    };
    const int begin = sources_of<kForward>(p, 2, place(t.result.column)).begin;
    t.source.column = begin * p.inner;
    t.source.columns =
        most(sources_of<kForward>(p, 2, place(t.result.column + t.result.columns - 1)).end - begin, 0) *
        p.inner;
  }
  const uint32_t mask = static_cast<uint32_t>(p.vector) - 1;
  const auto at = [&](const ColumnsPart& part, const PoolSide& side) {
    return static_cast<int>((static_cast<uint32_t>(part.plane) * static_cast<uint32_t>(side.plane) +
                             static_cast<uint32_t>(part.row * side.line + part.column + side.shift)) &
                            mask);
  };
  t.source.at = at(t.source, p.source);
  t.result.at = at(t.result, p.result);
  return t;
}

// Whole lines are one run, those of whole planes, too.
RG_DEVICE inline PoolRuns runs_of(const PoolColumns& p, const ColumnsTile& t, const PoolSide& side,
                                  const ColumnsPart& part) {
  const bool planes = p.whole && t.result.rows == p.rows;
  return {planes ? 1 : part.planes,
          p.whole ? 1 : part.rows,
          (planes ? part.planes : 1) * (p.whole ? part.rows : 1) * part.columns,
          part.plane * side.plane + part.row * side.line + part.column,
          side.plane,
          side.line,
          side.total,
          part.at,
          side.layer,
          side.pitch,
          side.runs,
          side.chunks};
}
RG_DEVICE inline PoolRuns source_runs(const PoolColumns& p, const ColumnsTile& t) {
  return runs_of(p, t, p.source, t.source);
}
RG_DEVICE inline PoolRuns result_runs(const PoolColumns& p, const ColumnsTile& t) {
  return runs_of(p, t, p.result, t.result);
}

// Before what is staged lies a line of zeros, for those outside the source.
template <class T>
RG_DEVICE void stage(const PoolRuns& runs, uint32_t thread, uint32_t threads, const T* source, T* staged) {
  stage_runs(runs, thread, threads, source, staged);
  if (thread < kStripMargin) staged[static_cast<int>(thread) - kStripMargin] = T{};
}

// A strip's walk down a band of steps, neighbours where windows share lines; else every so many, so that the
// lanes of a warp are on neighbouring steps and not on the same banks. What is read beside a line is masked:
// bits that are anything, but no numbers. table: reciprocals for windows that count p.usual along D and H, by
// column of the tile.
template <class Codec, class Kind>
RG_DEVICE void walk_strip(const PoolColumns& p, const ColumnsTile& t, int plane, int band, int strip,
                          const typename Codec::Type* staged, const float* table,
                          typename Codec::Type* results) {
  using T = typename Codec::Type;
  using W = typename Kind::W;
  using H = typename Kind::H;
  constexpr bool kForward = Kind::kForward;
  constexpr int kC = W::kResults, kN = W::kSources, kR = H::kReach;
  const WindowAxis &h = p.windows.axes[1], &w = p.windows.axes[2];
  const int column = (t.strip + strip) * kC - p.phase_w;
  const int first = kForward ? column * W::kS - w.pad : (column + w.pad) / W::kS - (W::kReach - 1);
  const uint32_t kept = inside_bits(column - t.result.column, t.result.columns, kC);
  if (kept == 0) return;
  uint32_t live[kN];
  RG_UNROLL
  for (int i = 0; i < kN; ++i) live[i] = unknown(is_inside(first + i, p.s_width) ? ~0u : 0u);
  const ColumnsLayers layers = layers_of<kForward>(p, t.result.plane + plane);
  const int rows = layers.begin < layers.end ? t.source.rows : 0;
  const int bands = kR == 1 ? static_cast<int>(p.by.bands.divisor) : 1;  // from a step to the next
  const int step = t.step + (kR == 1 ? band : band * p.cut.band);
  const int end = kR == 1 ? t.step + t.steps : least(step + p.cut.band, t.step + t.steps);
  int line =
      (kForward ? step * H::kS - h.pad : step + h.pad / H::kS - (kR - 1)) - t.source.row;  // in the tile
  const T* from = staged + (t.source.at + (layers.begin - t.source.plane) * p.source.layer +
                            line * p.source.pitch + (first - t.source.column));
  int row = (kForward ? step : step * H::kS - p.phase_h) - t.result.row;
  T* to =
      results + (t.result.at + plane * p.result.layer + row * p.result.pitch + (column - t.result.column));

  constexpr bool kDivides = !Kind::kPlain;
  constexpr int kFactors = !kDivides ? 1 : kForward ? kC : kN;
  float usual[kFactors] = {};
  if (kDivides && p.divide) RG_UNROLL
  for (int i = 0; i < kFactors; ++i)
    usual[i] = table[kForward ? column + i - t.result.column : first + i - t.source.column];
  // The next line, across; wanted: else it is as if there were none.
  const auto next = [&](bool wanted, float(&sums)[kC]) {
    const bool is_line = wanted && is_inside(line, rows);
    const T* const here = is_line ? from : staged - kStripMargin;
    const auto load = [&](const T* address, int depth, float(&loaded)[kN]) {
      RG_UNROLL
      for (int i = 0; i < kN; ++i) loaded[i] = Codec::load(address[i]);
      if (kForward || Kind::kPlain || !p.divide) return;
      const float counted = static_cast<float>(count_of(p.windows.axes[0], depth)) *
                            static_cast<float>(count_of(h, t.source.row + line));
      RG_UNROLL
      for (int i = 0; i < kN; ++i)
        loaded[i] *= counted == p.usual
                         ? usual[i % kFactors]
                         : Codec::reciprocal(counted * static_cast<float>(count_of(w, first + i)));
    };
    float values[kN];
    load(here, layers.s_depth, values);
    if (p.deep && is_line) {
      const T* deeper = from;
      RG_UNROLL_BY(1)
      for (int layer = layers.begin + 1; layer < layers.end; ++layer) {
        deeper += p.source.layer;
        float more[kN];
        load(deeper, layers.s_depth + layer - layers.begin, more);
        RG_UNROLL
        for (int i = 0; i < kN; ++i) values[i] += more[i];
      }
    }
    if (p.edges) RG_UNROLL
    for (int i = 0; i < kN; ++i) values[i] = masked(values[i], live[i]);
    RG_UNROLL
    for (int c = 0; c < kC; ++c) {
      sums[c] = W::first(c) < W::end(c) ? values[W::first(c)] : 0.0f;
      RG_UNROLL
      for (int i = W::first(c) + 1; i < W::end(c); ++i) sums[c] += values[i];
    }
    ++line;
    from += p.source.pitch;
  };
  // The lines of a step: `part` of those that complete a window, `full` of all of them.
  const auto gather = [&](bool is_last, float(&part)[kC], float(&full)[kC]) {
    if constexpr (!kForward) {
      next(true, part);
      RG_UNROLL
      for (int c = 0; c < kC; ++c) full[c] = part[c];
    } else {
      RG_UNROLL
      for (int r = 0; r < H::kS; ++r) {
        if (kR == 1 && r >= H::kK) {  // between windows
          ++line;
          from += p.source.pitch;
          continue;
        }
        float sums[kC];
        next(r < H::kLast || !is_last, sums);
        RG_UNROLL
        for (int c = 0; c < kC; ++c) {
          full[c] = r == 0 ? sums[c] : full[c] + sums[c];
          if (r < H::kLast) part[c] = full[c];
        }
      }
    }
  };
  float last[kR][kC] = {};  // [k]: the sum of the last k steps
  const auto push = [&](const float(&sums)[kC]) {
    RG_UNROLL
    for (int k = kR - 1; k > 0; --k) RG_UNROLL
    for (int c = 0; c < kC; ++c) last[k][c] = k > 1 ? last[k - 1][c] + sums[c] : sums[c];
  };
  const auto put = [&](const float(&values)[kC]) {
    const uint32_t mask = unknown(H::kResults == 1 || is_inside(row, t.result.rows) ? kept : 0u);
    RG_UNROLL
    for (int c = 0; c < kC; ++c)
      if ((mask >> c & 1u) != 0)
        to[c] = Codec::store(Codec::add_product(values[c], p.windows.scale, 0.0f));  // no negative zeros
    ++row;
    to += p.result.pitch;
  };
  float part[kC], full[kC];
  RG_UNROLL_BY(1)
  for (int j = 1; j < kR; ++j) {
    gather(false, part, full);
    push(full);
  }
  const int others = (bands - 1) * (kForward ? H::kS : 1), other_rows = (bands - 1) * H::kResults;
  RG_UNROLL_BY(2)
  for (int i = step; i < end; i += bands) {
    gather(i + 1 == end, part, full);
    float all[kC];
    RG_UNROLL
    for (int c = 0; c < kC; ++c) all[c] = kR > 1 ? last[kR - 1][c] + part[c] : part[c];
    if constexpr (kForward) {
      if (!Kind::kPlain && p.divide) {
        const float counted = static_cast<float>(count_of(p.windows.axes[0], layers.depth)) *
                              static_cast<float>(count_of(h, t.result.row + row));
        RG_UNROLL
        for (int c = 0; c < kC; ++c)
          all[c] *= counted == p.usual
                        ? usual[c % kFactors]
                        : Codec::reciprocal(counted * static_cast<float>(count_of(w, column + c)));
      }
      put(all);
    } else {
      float less[kC];  // of the places that one step less holds
      RG_UNROLL
      for (int c = 0; c < kC; ++c)
        less[c] = kR > 2 ? last[kR > 2 ? kR - 2 : 0][c] + part[c] : kR == 2 ? part[c] : 0.0f;
      RG_UNROLL
      for (int r = 0; r < H::kS; ++r) put(r < H::kLast ? all : less);
    }
    push(full);
    if constexpr (kR == 1) {
      line += others;
      from += others * p.source.pitch;
      row += other_rows;
      to += other_rows * p.result.pitch;
    }
  }
}

// Calls function(plane, band, column) for the thread's share of them.
template <class Function>
RG_DEVICE void for_items(const ColumnsTile& t, const FastDiv& bands, const FastDiv& columns, uint32_t thread,
                         uint32_t threads, const Function& function) {
  const uint32_t items = static_cast<uint32_t>(t.result.planes) * bands.divisor * columns.divisor;
  RG_UNROLL_BY(1)
  for (uint32_t item = thread; item < items; item += threads) {
    uint32_t column = item;
    uint32_t band = columns.split(column);
    const auto plane = static_cast<int>(bands.split(band));
    function(plane, static_cast<int>(band), static_cast<int>(column));
  }
}

// The table of walk_strip; before the walk, where windows have different divisors.
template <class Codec, bool kForward>
RG_DEVICE void reciprocals(const PoolColumns& p, const ColumnsTile& t, uint32_t thread, uint32_t threads,
                           float* table) {
  const int first = kForward ? t.result.column : t.source.column,
            count = kForward ? t.result.columns : t.source.columns;
  for (auto i = static_cast<int>(thread); i < count; i += static_cast<int>(threads))
    table[i] = Codec::reciprocal(p.usual * static_cast<float>(count_of(p.windows.axes[2], first + i)));
}

template <class Codec, class Kind>
RG_DEVICE void walk(const PoolColumns& p, const ColumnsTile& t, uint32_t thread, uint32_t threads,
                    const typename Codec::Type* staged, const float* table, typename Codec::Type* results) {
  for_items(t, p.by.bands, p.by.strips, thread, threads, [&](int plane, int band, int strip) {
    if ((Kind::H::kReach == 1 ? band : band * p.cut.band) < t.steps)
      walk_strip<Codec, Kind>(p, t, plane, band, strip, staged, table, results);
  });
}

// Rows of results that add the same lines have the same sums.
template <class Codec, bool kForward>
RG_DEVICE void add_down(const PoolColumns& p, const ColumnsTile& t, uint32_t thread, uint32_t threads,
                        const typename Codec::Type* staged, float* sums) {
  for_items(t, p.by.bands, p.by.s_columns, thread, threads, [&](int plane, int band, int column) {
    if (column >= t.source.columns) return;
    const ColumnsLayers layers = layers_of<kForward>(p, t.result.plane + plane);
    const auto* const from =
        staged + (t.source.at + (layers.begin - t.source.plane) * p.source.layer + column);
    const int first = band * p.cut.band, end = least(first + p.cut.band, t.result.rows);
    float* to = sums + (plane * p.shared.sums_rows + first) * p.shared.sums_pitch + column;
    const bool divide = !kForward && p.divide;
    const float counted =
        divide
            ? static_cast<float>(count_of(
                  p.windows.axes[2],
                  static_cast<int>(p.by.channels.quotient(static_cast<uint32_t>(t.source.column + column)))))
            : 1.0f;
    Places before{0, -1};
    float sum = 0;
    for (int row = first; row < end; ++row, to += p.shared.sums_pitch) {
      const Places lines = sources_of<kForward>(p, 1, t.result.row + row);
      if (lines.begin != before.begin || lines.end != before.end) {
        before = lines;
        sum = 0;
        const auto* layer = from + (lines.begin - t.source.row) * p.source.pitch;
        for (int z = layers.begin; z < layers.end; ++z, layer += p.source.layer) {
          const auto* line = layer;
          const float depths = divide ? counted * static_cast<float>(count_of(
                                                      p.windows.axes[0], layers.s_depth + z - layers.begin))
                                      : 1.0f;
          RG_UNROLL_BY(4)
          for (int i = lines.begin; i < lines.end; ++i, line += p.source.pitch) {
            const float value = Codec::load(*line);
            sum += divide ? value *
                                Codec::reciprocal(depths * static_cast<float>(count_of(p.windows.axes[1], i)))
                          : value;
          }
        }
      }
      *to = sum;
    }
  });
}

template <class Codec, bool kForward>
RG_DEVICE void add_across(const PoolColumns& p, const ColumnsTile& t, uint32_t thread, uint32_t threads,
                          const float* sums, typename Codec::Type* results) {
  for_items(t, p.by.bands, p.by.strips, thread, threads, [&](int plane, int band, int column) {
    if (column >= t.result.columns) return;
    auto channel = static_cast<uint32_t>(t.result.column + column);
    const auto place = static_cast<int>(p.by.channels.split(channel));
    const Places places = sources_of<kForward>(p, 2, place);
    const int first = band * p.cut.band, end = least(first + p.cut.band, t.result.rows);
    const float* from = sums + ((plane * p.shared.sums_rows + first) * p.shared.sums_pitch +
                                (places.begin * p.inner + static_cast<int>(channel) - t.source.column));
    auto* to = results + (t.result.at + plane * p.result.layer + first * p.result.pitch + column);
    const bool divide = kForward && p.divide;
    const float counted =
        divide ? static_cast<float>(
                     count_of(p.windows.axes[0], layers_of<kForward>(p, t.result.plane + plane).depth)) *
                     static_cast<float>(count_of(p.windows.axes[2], place))
               : 1.0f;
    for (int row = first; row < end; ++row, from += p.shared.sums_pitch, to += p.result.pitch) {
      float sum = 0;
      RG_UNROLL_BY(4)
      for (int i = 0; i < places.end - places.begin; ++i) sum += from[i * p.inner];
      const float factor = divide ? Codec::reciprocal(counted * static_cast<float>(count_of(
                                                                    p.windows.axes[1], t.result.row + row)))
                                  : p.windows.scale;
      *to = Codec::store(Codec::add_product(sum, factor, 0.0f));
    }
  });
}

}  // namespace retrograd::kernels::cuda
