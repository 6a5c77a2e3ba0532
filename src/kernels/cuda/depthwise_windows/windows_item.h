// SPDX-License-Identifier: Apache-2.0
// What a thread does for one item (windows_plan.h), in plain C++: kernels run it on the GPU, tests on the
// CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/depthwise_windows/windows_plan.h"

namespace retrograd::kernels::cuda {

// Chunks of matching taps along slide of which some result reads inside the source with some tap.
RG_DEVICE inline Span live_chunks(const DepthwiseWindows& p, const Taps& taps) {
  const int step = p.chunk * p.slide.step;
  const int reach = taps.base + (kSlide - 1) * p.spread + (p.chunk - 1) * p.slide.step;
  Span live{0, 0};
  if (reach < 0)
    live.begin = static_cast<int>(p.by_chunk_step.quotient(static_cast<uint32_t>(step - 1 - reach)));
  if (taps.base < p.slide.source)
    live.end = static_cast<int>(
        p.by_chunk_step.quotient(static_cast<uint32_t>(p.slide.source - taps.base + step - 1)));
  const int chunks = p.chunk == 1 ? taps.count : (taps.count + kChunk - 1) / kChunk;
  if (live.end > chunks) live.end = chunks;
  return live;
}

// An address in the GPU's memory that the compiler does not take apart and put together again in every round
// of a loop.
template <class T>
RG_DEVICE inline const T* settled(const T* address) {
#ifdef __CUDACC__
  size_t bits = __cvta_generic_to_global(address);
  asm volatile("" : "+l"(bits));
  return static_cast<const T*>(__cvta_global_to_generic(bits));
#else
  return address;
#endif
}

// Which of the rows from `row` on lie inside the source, a bit each; `wanted` of them are asked for.
template <int kRows>
RG_DEVICE inline uint32_t live_rows(const DepthwiseWindows& p, int row, int wanted) {
  uint32_t live = 0;
  RG_UNROLL
  for (int m = 0; m < kRows; ++m)
    if (m < wanted && static_cast<uint32_t>(row + m * p.spread) < static_cast<uint32_t>(p.slide.source))
      live |= 1u << m;
  return live;
}
template <class T, int kRows>
RG_DEVICE inline void find_rows(const DepthwiseWindows& p, const T* source, int row,
                                const T* (&from)[kRows]) {
  RG_UNROLL
  for (int m = 0; m < kRows; ++m)
    from[m] = settled(m == 0 ? source + int64_t{row} * p.slide.source_pitch : from[m - 1] + p.row_pitch);
}

// Where a chunk begins: a place of the source and a row of it, and a tap; taps from one to the next along
// slide and along inner, and how many of these there are.
template <class T>
struct Chunk {
  const T* source;
  int row, tap, to_tap, to_column, columns;
};

// A column of kTaps weights and the kSlide + kTaps − 1 values below each other that meet them are read for
// kSlide · kTaps products. Rows beyond the edge are not multiplied: an infinite weight there would make a
// NaN.
template <int kTaps, int kPack, class T, class Load, class Weight>
RG_DEVICE inline void gather_chunk(const DepthwiseWindows& p, const Chunk<T>& chunk, const Load& load,
                                   const Weight& weight, float (&sums)[kSlide][kPack]) {
  constexpr int kRows = kSlide + kTaps - 1;
  const uint32_t live = live_rows<kRows>(p, chunk.row, kRows);
  const T* from[kRows];
  find_rows(p, chunk.source, chunk.row, from);
  int offset = 0, tap = chunk.tap;
  RG_UNROLL_BY(3)
  for (int column = 0; column < chunk.columns; ++column, offset += p.column_pitch, tap += chunk.to_column) {
    float values[kRows][kPack], weights[kTaps][kPack];
    RG_UNROLL
    for (int m = 0; m < kRows; ++m)
      if ((live >> m & 1) != 0) load(from[m] + offset, values[m]);
    RG_UNROLL
    for (int j = 0; j < kTaps; ++j) weight(tap + j * chunk.to_tap, weights[j]);
    RG_UNROLL
    for (int n = 0; n < kTaps * kSlide * kPack; ++n) {
      const int j = n / (kSlide * kPack), v = n / kPack % kSlide, k = n % kPack;
      if ((live >> (v + j) & 1) != 0) sums[v][k] = fmaf(values[v + j][k], weights[j][k], sums[v][k]);
    }
  }
}

// sum[v] = Σ_taps source · weight of the four results of each place of a run, for which emit(place, sums) is
// called. load(address, values) reads kPack channels, weight(tap · tap_pitch, values) their weights.
template <int kPack, class T, class Load, class Weight, class Emit>
RG_DEVICE void gather_run(const DepthwiseWindows& p, const WindowPlace& at, const T* source, const Load& load,
                          const Weight& weight, const Emit& emit) {
  const Taps of_b = taps_at(p.outer, at.outer), of_s = taps_at(p.slide, at.slide),
             of_i = taps_at(p.inner, at.inner);
  const Span b = live_taps(p.outer, of_b), c = live_chunks(p, of_s), i = live_taps(p.inner, of_i);
  const int64_t first_column = int64_t{of_i.base + i.begin * p.inner.step} * p.inner.source_pitch;
  const int first_tap = (of_i.first + i.begin * of_i.apart) * p.inner_taps;
  Chunk<T> chunk;
  chunk.to_tap = of_s.apart * p.slide_taps * p.tap_pitch;
  chunk.to_column = of_i.apart * p.inner_taps * p.tap_pitch;
  chunk.columns = i.end - i.begin;
  for (int place = at.begin; place < at.end; ++place) {
    const Taps of_a = taps_at(p.run, place);
    const Span a = live_taps(p.run, of_a);
    float sums[kSlide][kPack] = {};
    for (int s = 0; s < p.sources; ++s)
      for (int ja = a.begin; ja < a.end; ++ja)
        for (int jb = b.begin; jb < b.end; ++jb) {
          chunk.source = source + int64_t{s} * p.source_channel +
                         int64_t{of_a.base + ja * p.run.step} * p.run.source_pitch +
                         int64_t{of_b.base + jb * p.outer.step} * p.outer.source_pitch + first_column;
          const int tap = s * p.taps + (of_a.first + ja * of_a.apart) * p.run_taps +
                          (of_b.first + jb * of_b.apart) * p.outer_taps + first_tap;
          for (int jc = c.begin * p.chunk; jc < c.end * p.chunk; jc += p.chunk) {
            chunk.row = of_s.base + jc * p.slide.step;
            chunk.tap = p.tap_pitch * (tap + (of_s.first + jc * of_s.apart) * p.slide_taps);
            const int left = p.chunk == 1 ? 1 : of_s.count - jc;
            if (left == 1)
              gather_chunk<1, kPack>(p, chunk, load, weight, sums);
            else if (left == 2)
              gather_chunk<2, kPack>(p, chunk, load, weight, sums);
            else if (left == 3)
              gather_chunk<3, kPack>(p, chunk, load, weight, sums);
            else
              gather_chunk<kChunk, kPack>(p, chunk, load, weight, sums);
          }
        }
    emit(place, sums);
  }
}

// The first tap of a tile, axis by axis, and how many of it there are.
struct TileTaps {
  int run, outer, slide, inner, slide_count, inner_count;
};
RG_DEVICE inline TileTaps tile_taps(const WeightWindows& w, uint32_t tile) {
  TileTaps taps;
  const int ks = slide_of(w.tile), ki = inner_of(w.tile);
  const DepthwiseWindows& p = w.windows;
  uint32_t inner = tile;
  uint32_t slide = w.by_inner_tiles.split(inner);
  uint32_t outer = w.by_slide_tiles.split(slide);
  taps.run = static_cast<int>(w.by_outer_kernel.split(outer));
  taps.outer = static_cast<int>(outer);
  taps.slide = static_cast<int>(slide) * ks;
  taps.inner = static_cast<int>(inner) * ki;
  taps.slide_count = p.slide.kernel - taps.slide < ks ? p.slide.kernel - taps.slide : ks;
  taps.inner_count = p.inner.kernel - taps.inner < ki ? p.inner.kernel - taps.inner : ki;
  return taps;
}
RG_DEVICE inline int tap_number(const DepthwiseWindows& p, const TileTaps& taps, int slide, int inner) {
  return taps.run * p.run_taps + taps.outer * p.outer_taps + (taps.slide + slide) * p.slide_taps +
         (taps.inner + inner) * p.inner_taps;
}

// Where tap `tap` of a result's place reads; axes of forward.
RG_DEVICE inline int position(const DepthwiseAxis& a, int place, int tap) {
  return place * a.stride - a.pad + tap * a.dilation;
}
RG_DEVICE inline bool is_inside(const DepthwiseAxis& a, int position) {
  return static_cast<uint32_t>(position) < static_cast<uint32_t>(a.source);
}

// sums[s][i] += Σ x · y over the places of an item, for the taps of a tile. Sums of taps that a tile does not
// have come to anything. What is not there counts as zero: its product with an infinity is NaN, and who adds
// the parts takes the formula then. All loads of a place are on their way before the first product.
template <int kS, int kI, int kPack, class T, class Load>
RG_DEVICE void weigh_run(const DepthwiseWindows& p, const TileTaps& tile, const WindowPlace& at, const T* x,
                         const T* y, const Load& load, float (&sums)[kS][kI][kPack]) {
  constexpr int kRows = kSlide + kS - 1;
  static_assert(kRows * kI <= 32);
  const int outer = position(p.outer, at.outer, tile.outer);
  if (!is_inside(p.outer, outer)) return;
  const int row = position(p.slide, at.slide, tile.slide), column = position(p.inner, at.inner, tile.inner);
  x += int64_t{outer} * p.outer.source_pitch + int64_t{column} * p.inner.source_pitch;
  y += result_offset(p, at);
  const uint32_t rows = live_rows<kRows>(p, row, kSlide - 1 + tile.slide_count);
  uint32_t live = 0;  // rows of all columns
  RG_UNROLL
  for (int i = 0; i < kI; ++i)
    if (i < tile.inner_count && is_inside(p.inner, column + i * p.inner.dilation)) live |= rows << i * kRows;
  if (live == 0) return;
  for (int place = at.begin; place < at.end; ++place, y += p.run.result_pitch) {
    const int run = position(p.run, place, tile.run);
    if (!is_inside(p.run, run)) continue;
    const T* from[kRows];
    find_rows(p, x + int64_t{run} * p.run.source_pitch, row, from);
    float of_x[kI][kRows][kPack] = {}, of_y[kSlide][kPack] = {};
    RG_UNROLL
    for (int v = 0; v < kSlide; ++v)
      if (at.slide + v * p.spacing < p.slide.results) load(y + v * p.spaced_pitch, of_y[v]);
    RG_UNROLL
    for (int n = 0; n < kI * kRows; ++n)
      if ((live >> n & 1) != 0)
        load(from[n % kRows] + n / kRows * p.column_pitch, of_x[n / kRows][n % kRows]);
    RG_UNROLL
    for (int n = 0; n < kI * kSlide * kS * kPack; ++n) {
      const int i = n / (kSlide * kS * kPack), v = n / (kS * kPack) % kSlide, s = n / kPack % kS,
                k = n % kPack;
      sums[s][i][k] = fmaf(of_x[i][v + s][k], of_y[v][k], sums[s][i][k]);
    }
  }
}

}  // namespace retrograd::kernels::cuda
