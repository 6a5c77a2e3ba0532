// SPDX-License-Identifier: Apache-2.0
// What a thread does for one item (windows_plan.h), in plain C++: kernels run it on the GPU, tests on the
// CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/depthwise/windows_plan.h"

namespace retrograd::kernels::cuda {

// Chunks of kTaps matching taps along slide of which some result reads inside the source with some tap.
template <int kTaps>
RG_DEVICE inline Span live_chunks(const Windows& p, const Taps& taps) {
  const int step = kTaps * p.slide.step;
  const int reach = taps.base + (kSlide - 1) * p.spread + (kTaps - 1) * p.slide.step;
  Span live{0, 0};
  if (reach < 0) live.begin = static_cast<int>(p.by_chunk.quotient(static_cast<uint32_t>(step - 1 - reach)));
  if (taps.base < p.slide.source)
    live.end =
        static_cast<int>(p.by_chunk.quotient(static_cast<uint32_t>(p.slide.source - taps.base + step - 1)));
  const int chunks = (taps.count + kTaps - 1) / kTaps;
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
RG_DEVICE inline uint32_t live_rows(const Windows& p, int row, int wanted) {
  uint32_t live = 0;
  RG_UNROLL
  for (int m = 0; m < kRows; ++m)
    if (m < wanted && static_cast<uint32_t>(row + m * p.spread) < static_cast<uint32_t>(p.slide.source))
      live |= 1u << m;
  return live;
}
template <class T, int kRows>
RG_DEVICE inline void find_rows(const Windows& p, const T* source, int row, const T* (&from)[kRows]) {
  const int64_t at_row = int64_t{p.spread} * p.slide.source_pitch;
  RG_UNROLL
  for (int m = 0; m < kRows; ++m)
    from[m] = settled(m == 0 ? source + int64_t{row} * p.slide.source_pitch : from[m - 1] + at_row);
}

// sum[v] = Σ_taps source · weight of the four results of each place of a run, for which emit(place, sums) is
// called. load(address, values) reads kPack channels, weight(tap · tap_pitch, values) their weights. kWhole:
// every place has a multiple of kTaps matching taps along slide, or none.
//
// A column of kTaps weights and the kSlide + kTaps − 1 values below each other that meet them are read for
// kSlide · kTaps products. Taps beyond the edge are not walked, or not multiplied: an infinite weight there
// would make a NaN.
template <int kTaps, bool kWhole, int kPack, class T, class Load, class Weight, class Emit>
RG_DEVICE void gather_run(const Windows& p, const WindowPlace& at, const T* source, const Load& load,
                          const Weight& weight, const Emit& emit) {
  constexpr int kRows = kSlide + kTaps - 1;
  const Taps of_b = taps_at(p.outer, at.outer), of_s = taps_at(p.slide, at.slide),
             of_i = taps_at(p.inner, at.inner);
  const Span b = live_taps(p.outer, of_b), c = live_chunks<kTaps>(p, of_s), i = live_taps(p.inner, of_i);
  const int at_inner = p.inner.step * p.inner.source_pitch;
  const int to_tap = of_s.apart * p.slide_taps * p.tap_pitch;
  const int to_inner = of_i.apart * p.inner_taps * p.tap_pitch;
  const int64_t first_column = int64_t{of_i.base + i.begin * p.inner.step} * p.inner.source_pitch;
  const int first_tap = (of_i.first + i.begin * of_i.apart) * p.inner_taps;
  for (int place = at.begin; place < at.end; ++place) {
    const Taps of_a = taps_at(p.run, place);
    const Span a = live_taps(p.run, of_a);
    float sums[kSlide][kPack] = {};
    for (int s = 0; s < p.sources; ++s)
      for (int ja = a.begin; ja < a.end; ++ja)
        for (int jb = b.begin; jb < b.end; ++jb)
          for (int jc = c.begin; jc < c.end; ++jc) {
            const int left = kWhole ? kTaps : of_s.count - jc * kTaps;
            const int row = of_s.base + jc * kTaps * p.slide.step;
            const uint32_t live = live_rows<kRows>(p, row, kSlide - 1 + left);
            const T* from[kRows];
            find_rows(p,
                      source + int64_t{s} * p.source_channel +
                          int64_t{of_a.base + ja * p.run.step} * p.run.source_pitch +
                          int64_t{of_b.base + jb * p.outer.step} * p.outer.source_pitch + first_column,
                      row, from);
            int tap = p.tap_pitch * (s * p.taps + (of_a.first + ja * of_a.apart) * p.run_taps +
                                     (of_b.first + jb * of_b.apart) * p.outer_taps +
                                     (of_s.first + jc * kTaps * of_s.apart) * p.slide_taps + first_tap);
            int column = 0;
            RG_UNROLL_BY(3)
            for (int ji = i.begin; ji < i.end; ++ji, column += at_inner, tap += to_inner) {
              float values[kRows][kPack], weights[kTaps][kPack];
              RG_UNROLL
              for (int m = 0; m < kRows; ++m)
                if ((live >> m & 1) != 0) load(from[m] + column, values[m]);
              RG_UNROLL
              for (int j = 0; j < kTaps; ++j)
                if (j < left) weight(tap + j * to_tap, weights[j]);
              RG_UNROLL
              for (int n = 0; n < kTaps * kSlide * kPack; ++n) {
                const int j = n / (kSlide * kPack), v = n / kPack % kSlide, k = n % kPack;
                if ((live >> (v + j) & 1) != 0 && j < left)
                  sums[v][k] = fmaf(values[v + j][k], weights[j][k], sums[v][k]);
              }
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
  const Windows& p = w.windows;
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
RG_DEVICE inline int tap_number(const Windows& p, const TileTaps& taps, int slide, int inner) {
  return taps.run * p.run_taps + taps.outer * p.outer_taps + (taps.slide + slide) * p.slide_taps +
         (taps.inner + inner) * p.inner_taps;
}

// Where tap `tap` of a result's place reads; axes of forward.
RG_DEVICE inline int position(const WindowAxis& a, int place, int tap) {
  return place * a.stride - a.pad + tap * a.dilation;
}
RG_DEVICE inline bool is_inside(const WindowAxis& a, int position) {
  return static_cast<uint32_t>(position) < static_cast<uint32_t>(a.source);
}

// sums[s][i] += Σ x · y over the places of an item, for the taps of a tile. Sums of taps that a tile does not
// have come to anything. A y that is not there counts as zero: its product with an infinity is NaN, and who
// adds the parts takes the formula then.
template <int kS, int kI, int kPack, class T, class Load>
RG_DEVICE void weigh_run(const Windows& p, const TileTaps& tile, const WindowPlace& at, const T* x,
                         const T* y, const Load& load, float (&sums)[kS][kI][kPack]) {
  constexpr int kRows = kSlide + kS - 1;
  const int outer = position(p.outer, at.outer, tile.outer);
  if (!is_inside(p.outer, outer)) return;
  const int row = position(p.slide, at.slide, tile.slide), column = position(p.inner, at.inner, tile.inner);
  x += int64_t{outer} * p.outer.source_pitch + int64_t{column} * p.inner.source_pitch;
  y += result_offset(p, at);
  uint32_t columns = 0;
  RG_UNROLL
  for (int i = 0; i < kI; ++i)
    if (i < tile.inner_count && is_inside(p.inner, column + i * p.inner.dilation)) columns |= 1u << i;
  const uint32_t live = live_rows<kRows>(p, row, kSlide - 1 + tile.slide_count);
  if (columns == 0 || live == 0) return;
  const int64_t at_result = int64_t{p.spacing} * p.slide.result_pitch;
  const int at_column = p.inner.dilation * p.inner.source_pitch;
  for (int place = at.begin; place < at.end; ++place, y += p.run.result_pitch) {
    const int run = position(p.run, place, tile.run);
    if (!is_inside(p.run, run)) continue;
    const T* from[kRows];
    find_rows(p, x + int64_t{run} * p.run.source_pitch, row, from);
    float of_y[kSlide][kPack] = {};
    RG_UNROLL
    for (int v = 0; v < kSlide; ++v)
      if (at.slide + v * p.spacing < p.slide.results) load(y + v * at_result, of_y[v]);
    RG_UNROLL
    for (int i = 0; i < kI; ++i)
      if ((columns >> i & 1) != 0) {
        float of_x[kRows][kPack];
        RG_UNROLL
        for (int m = 0; m < kRows; ++m)
          if ((live >> m & 1) != 0) load(from[m] + i * at_column, of_x[m]);
        RG_UNROLL
        for (int n = 0; n < kSlide * kS * kPack; ++n) {
          const int v = n / (kS * kPack), s = n / kPack % kS, k = n % kPack;
          if ((live >> (v + s) & 1) != 0) sums[s][i][k] = fmaf(of_x[v + s][k], of_y[v][k], sums[s][i][k]);
        }
      }
  }
}

}  // namespace retrograd::kernels::cuda
