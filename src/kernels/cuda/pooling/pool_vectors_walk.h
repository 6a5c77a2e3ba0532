// SPDX-License-Identifier: Apache-2.0
// What a thread of pool_vectors does; the test runs it for all threads on the CPU. A step is a window along
// H: forward it reads `stride` lines and gives one row of results, backward it reads one line and gives
// `stride` rows.
#pragma once

#include "kernels/cuda/one_of.h"
#include "kernels/cuda/pooling/pool_sources.h"
#include "kernels/cuda/pooling/pool_words.h"

namespace retrograd::kernels::cuda {

struct PoolVectors {
  PoolAxes axes;
  FastDiv vectors, columns, bands, depths;  // of the result; bands of steps
  uint32_t threads;
  int s_depths, s_rows, s_width, rows;  // of the source, and rows of the result
  int taps, reach;                      // sources of a result along W, and steps that it adds, at most
  int last;                             // of the places of a stride, those in the last step of a window
  int band, steps, phase, pad_steps;    // steps of a band and of an image; padding in steps: rest, whole ones
};

inline PoolVectors vectors_of(const Pool& given, bool forward) {
  const Pool pool = walked_down(given);
  const auto& [d, h, w] = pool.axes;
  const VectorsCut cut = vectors_cut(pool, forward);
  const int64_t vectors = pool.channels * static_cast<int64_t>(size_of(pool.x.dtype)) / 16;
  const int64_t bands = (cut.steps + cut.band - 1) / cut.band, columns = forward ? w.y : w.x,
                depths = forward ? d.y : d.x;
  PoolVectors p{};
  p.axes = axes_of(pool);
  p.vectors = FastDiv(vectors);
  p.columns = FastDiv(columns);
  p.bands = FastDiv(bands);
  p.depths = FastDiv(depths);
  p.threads = static_cast<uint32_t>(pool.batch * depths * bands * columns * vectors);
  p.s_depths = static_cast<int>(forward ? d.x : d.y);
  p.s_rows = static_cast<int>(forward ? h.x : h.y);
  p.s_width = static_cast<int>(forward ? w.x : w.y);
  p.rows = static_cast<int>(forward ? h.y : h.x);
  p.taps = cut.taps;
  p.reach = cut.reach;
  p.last = static_cast<int>(h.kernel - (cut.reach - 1) * h.stride);
  p.band = cut.band;
  p.steps = cut.steps;
  p.phase = forward ? 0 : static_cast<int>(h.pad % h.stride);
  p.pad_steps = static_cast<int>(h.pad / h.stride);
  return p;
}

// Calls function(taps, reach) with the constants of the kernel that is there: those taps or more, and the
// reach, or more from 4 on.
template <class Function>
void with_vectors_kind(const PoolVectors& p, Function&& function) {
  const auto is = [&](int taps, int reach) {
    return p.taps <= taps && (reach < 4 ? p.reach == reach : p.reach <= reach);
  };
  if (is(1, 1)) return function(Count<1>{}, Count<1>{});
  if (is(2, 1)) return function(Count<2>{}, Count<1>{});
  if (is(4, 1)) return function(Count<4>{}, Count<1>{});
  if (is(8, 1)) return function(Count<8>{}, Count<1>{});
  if (is(1, 2)) return function(Count<1>{}, Count<2>{});
  if (is(2, 2)) return function(Count<2>{}, Count<2>{});
  if (is(4, 2)) return function(Count<4>{}, Count<2>{});
  if (is(3, 3)) return function(Count<3>{}, Count<3>{});
  if (is(1, 4)) return function(Count<1>{}, Count<4>{});
  if (is(4, 4)) return function(Count<4>{}, Count<4>{});
  if (is(8, 4)) return function(Count<8>{}, Count<4>{});
  function(Count<kVectorsReach>{}, Count<kVectorsReach>{});
}

template <class Codec, int kTaps>
struct PoolVectorsLine {
  using T = typename Codec::Type;
  static constexpr int kV = 16 / sizeof(T);
  PoolWords words[kTaps];

  RG_DEVICE void load(const T* source, uint32_t at, uint32_t step, int count) {
    RG_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      words[j] = PoolWords{};
      if (j < count)
        words[j] = *reinterpret_cast<const PoolWords*>(source + (at + static_cast<uint32_t>(j) * step));
    }
  }
  // What is not there was loaded as zeros. others: what windows count along the other axes; 0: not divided.
  RG_DEVICE void add(const PoolAxes& axes, float others, int first, float (&sums)[kV]) const {
    RG_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      const float factor = others == 0 ? 1.0f : Codec::reciprocal(others * counted(axes, 2, first + j));
      T values[kV];
      memcpy(values, &words[j], sizeof(values));
      RG_UNROLL
      for (int v = 0; v < kV; ++v) sums[v] = Codec::add_product(Codec::load(values[v]), factor, sums[v]);
    }
  }
};

template <class Codec>
RG_DEVICE void put_vector(const float (&sums)[16 / sizeof(typename Codec::Type)], float factor,
                          typename Codec::Type* to) {
  constexpr int kV = 16 / sizeof(typename Codec::Type);
  typename Codec::Type results[kV];
  RG_UNROLL
  for (int v = 0; v < kV; ++v)
    results[v] = Codec::store(Codec::add_product(sums[v], factor, 0.0f));  // no negative zeros
  PoolWords words;
  memcpy(&words, results, sizeof(words));
  *reinterpret_cast<PoolWords*>(to) = words;
}

template <class Codec, bool kForward, int kTaps, int kReach>
RG_DEVICE void walk_vectors(const PoolVectors& p, uint32_t thread, const typename Codec::Type* source,
                            typename Codec::Type* result) {
  using T = typename Codec::Type;
  constexpr int kV = 16 / sizeof(T);
  if (thread >= p.threads) return;
  uint32_t vector = thread;
  uint32_t column = p.vectors.split(vector);
  uint32_t band = p.columns.split(column);
  uint32_t depth = p.bands.split(band);
  const uint32_t image = p.depths.split(depth);
  const WindowAxis& h = p.axes.windows.axes[1];
  const bool divide = !p.axes.windows.uniform;
  const int reach = kReach < 4 ? kReach : p.reach;
  // Elements, modulo 2^32: lines before and behind the tensor are not read.
  const uint32_t step = p.vectors.divisor * kV, pitch = static_cast<uint32_t>(p.s_width) * step,
                 layer = pitch * static_cast<uint32_t>(p.s_rows);  // of a place, a line, a depth
  const Places columns = sources_of<kForward>(p.axes, 2, static_cast<int>(column)),
               depths = sources_of<kForward>(p.axes, 0, static_cast<int>(depth));
  const int taps = depths.begin < depths.end ? columns.end - columns.begin : 0;

  const int first = static_cast<int>(band) * p.band, steps = least(p.band, p.steps - first);
  const int lines = kForward ? (steps - 1) * h.stride + h.kernel : steps + reach - 1;
  const int start = kForward ? first * h.stride - h.pad : first + p.pad_steps - (reach - 1);
  const auto number = [](int n) { return static_cast<uint32_t>(n); };
  uint32_t at =
      ((image * number(p.s_depths) + number(depths.begin)) * number(p.s_rows) + number(start)) * pitch +
      number(columns.begin) * step + vector * kV;
  // The next line of the next depth is under way while one is added, those of the next places to L2.
  int line = 0, deep = depths.begin;
  const int deeps = most(depths.end - depths.begin, 1), ahead = deeps > 1 ? 1 : 2;
  const uint32_t back = pitch - number(deeps - 1) * layer, far = number(ahead) * pitch;
  const int own = kForward ? least(p.axes.windows.axes[2].stride, taps) : least(1, taps);
  const auto is_line = [&](int i) { return i < lines && number(start + i) < number(p.s_rows); };
  const auto load_next = [&](PoolVectorsLine<Codec, kTaps>& next) {
    next.load(source, at, step, is_line(line) ? taps : 0);
    const int wanted = kTaps <= 4 && is_line(line + ahead) ? own : 0;  // more loads are enough by themselves
    RG_UNROLL
    for (int j = 0; j < kTaps; ++j)
      if (j < wanted) prefetch_words(source + (at + far + number(j) * step));
    const bool is_last = ++deep >= depths.end;
    at += is_last ? back : layer;
    deep = is_last ? depths.begin : deep;
    line += is_last ? 1 : 0;
  };

  int row = (kForward ? first : first * h.stride - p.phase);
  const uint32_t r_pitch = p.columns.divisor * step;
  uint32_t to = ((image * p.depths.divisor + depth) * number(p.rows) + number(row)) * r_pitch +
                column * step + vector * kV;
  const auto put = [&](const float(&values)[kV]) {
    const float factor =
        kForward && divide
            ? Codec::reciprocal(counted(p.axes, static_cast<int>(depth), row, static_cast<int>(column)))
            : p.axes.windows.scale;
    if (static_cast<unsigned>(row) < static_cast<unsigned>(p.rows))
      put_vector<Codec>(values, factor, result + to);
    ++row;
    to += r_pitch;
  };
  float sums[kReach][kV] = {};  // of this step, of the one before it, …
  int within = 0;               // forward: lines of this step
  int i = 0, z = depths.begin;  // the line and the depth that is added
  const auto turn = [&](const PoolVectorsLine<Codec, kTaps>& now, PoolVectorsLine<Codec, kTaps>& next) {
    load_next(next);
    now.add(p.axes, !kForward && divide ? counted(p.axes, 0, z) * counted(p.axes, 1, start + i) : 0.0f,
            columns.begin, sums[0]);
    if (++z < depths.end) return true;
    z = depths.begin;
    if (kForward) ++within;
    const bool is_result = kForward ? within == p.last && i >= (reach - 1) * h.stride : i >= reach - 1;
    if (is_result) {
      float all[kV], less[kV] = {};  // less: of the places that one step less holds
      RG_UNROLL
      for (int v = 0; v < kV; ++v) {
        all[v] = sums[0][v];
        RG_UNROLL
        for (int j = 1; j < kReach; ++j) {
          if (j == reach - 1) less[v] = all[v];
          if (j < reach) all[v] += sums[j][v];
        }
      }
      if constexpr (kForward) {
        put(all);
      } else {
        RG_UNROLL_BY(1)
        for (int r = 0; r < p.last; ++r) put(all);
        RG_UNROLL_BY(1)
        for (int r = p.last; r < h.stride; ++r) put(less);
      }
    }
    if (!kForward || within >= h.stride) {
      within = 0;
      RG_UNROLL
      for (int j = kReach - 1; j >= 0; --j) RG_UNROLL
      for (int v = 0; v < kV; ++v) sums[j][v] = j > 0 ? sums[j - 1][v] : 0.0f;
    }
    return ++i < lines;
  };
  // Two in turn: a copy of what is under way would wait for it.
  PoolVectorsLine<Codec, kTaps> even, odd;
  load_next(even);
  RG_UNROLL_BY(1)
  while (turn(even, odd) && turn(odd, even)) {
  }
}

}  // namespace retrograd::kernels::cuda
