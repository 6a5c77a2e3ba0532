// SPDX-License-Identifier: Apache-2.0
// Tiles of taps with planes or channels as lanes, once for every instruction set.
#include "kernels/cpu/depthwise/depthwise_dots.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_dots.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// Tap i of a tile reads place i % kClasses of those that a step brings, against the y of i / kClasses steps
// ago. With one class a step is a place, with two the stride skips every other one: then a place is loaded
// once for all taps. With a class for each tap nothing is shared, whatever stride and dilation are.
//
// Accumulators are named variables, as in depthwise_rows.cpp: a, b, c and e are rows of taps.
#define RG_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#define RG_EACH_DOWN(DO) DO(6) DO(5) DO(4) DO(3) DO(2) DO(1) DO(0)
#define RG_CLEAR(i) [[maybe_unused]] V a##i = hn::Zero(d), b##i = a##i, c##i = a##i, e##i = a##i;
#define RG_ADD_TO(row, sum, x, i) \
  if constexpr (kTapRows > row)   \
    sum##i = hn::MulAdd(then, kOneClass ? x##_here : elements.load(d, x + i % kClasses * pitch), sum##i);
#define RG_HERE(row, x) \
  [[maybe_unused]] const V x##_here = kOneClass && kTapRows > row ? held(elements.load(d, x)) : hn::Zero(d);
#define RG_PLACES RG_HERE(0, x0) RG_HERE(1, x1) RG_HERE(2, x2) RG_HERE(3, x3)
#define RG_ADD(i)                                                                               \
  if constexpr (i < kTaps) {                                                                    \
    const V then = elements.load(d, y - i / kClasses * y_step);                                 \
    RG_ADD_TO(0, a, x0, i) RG_ADD_TO(1, b, x1, i) RG_ADD_TO(2, c, x2, i) RG_ADD_TO(3, e, x3, i) \
  }
// A jump to the first live tap, then multiply-adds only.
#define RG_ADD_FROM(i) \
  case i:              \
    RG_ADD(i) [[fallthrough]];
#define RG_ADD_WITHIN(i) \
  if (i >= low && i < high) RG_ADD(i)
#define RG_ADD_LIVE(i) \
  if (q >= t.begin[i] && q < t.end[i]) RG_ADD(i)
#define RG_WINDOW(i) [[maybe_unused]] V y##i = i < kWindow ? elements.load(d, y - i * y_step) : hn::Zero(d);
#define RG_SHARE(sum, i, half) \
  if constexpr (i < kTaps)     \
    sum##i = hn::MulAdd(kOneClass ? y##i : y##half, kOneClass || i % 2 == 0 ? even : odd, sum##i);
#define RG_SHARE_ROW(row, sum, x)                                                                       \
  if constexpr (kTapRows > row) {                                                                       \
    const V even = held(elements.load(d, x));                                                           \
    [[maybe_unused]] const V odd = kOneClass ? even : held(elements.load(d, x + pitch));                \
    RG_SHARE(sum, 0, 0)                                                                                 \
    RG_SHARE(sum, 1, 0)                                                                                 \
    RG_SHARE(sum, 2, 1) RG_SHARE(sum, 3, 1) RG_SHARE(sum, 4, 2) RG_SHARE(sum, 5, 2) RG_SHARE(sum, 6, 3) \
  }
#define RG_STORE_ROW(row, sum, i)                    \
  if constexpr (kTapRows > row) {                    \
    float* at = sums + (row * t.dots.taps + i) * n;  \
    hn::Store(hn::Add(hn::Load(d, at), sum), d, at); \
  }
#define RG_STORE(i)                                                                                     \
  if constexpr (i < kTaps) {                                                                            \
    RG_STORE_ROW(0, a##i, i) RG_STORE_ROW(1, b##i, i) RG_STORE_ROW(2, c##i, i) RG_STORE_ROW(3, e##i, i) \
  }

// Positions that are added for a block of lanes before the next has its turn: fewer would spend their time on
// taking up sums.
constexpr int64_t kFewestPositions = 32;

// Some neighbouring taps of the whole.
struct Tile {
  const DepthwiseDots& dots;
  int64_t x = 0;  // elements to its first tap at position 0
  // Steps at which each tap is live, some are, and all are.
  std::array<int64_t, kDepthwiseTileTaps> begin{}, end{};
  int64_t some_begin = 0, some_end = 0, all_begin = 0, all_end = 0;
};

template <int kTaps, int kClasses>
HWY_INLINE Tile tile_of(const DepthwiseDots& r, int64_t first_row, int64_t first_tap) {
  const int64_t last = r.first + r.count;
  Tile t{r, first_row * r.x_tap_row + (r.start + first_tap * r.dilation) * r.x_place};
  t.some_begin = t.all_end = last + kTaps;
  t.some_end = t.all_begin = r.first;
  for (int i = 0; i < kTaps; ++i) {
    const int64_t begin = std::max(r.begin[first_tap + i], r.first) + i / kClasses;
    const int64_t end = std::min(r.end[first_tap + i], last) + i / kClasses;
    t.begin[static_cast<size_t>(i)] = begin;
    t.end[static_cast<size_t>(i)] = end;
    t.all_begin = std::max(t.all_begin, begin);
    t.all_end = std::min(t.all_end, end);
    if (begin >= end) continue;
    t.some_begin = std::min(t.some_begin, begin);
    t.some_end = std::max(t.some_end, end);
  }
  return t;
}

// Rows of one block of lanes.
template <int kTapRows, int kTaps, int kClasses, class E>
HWY_INLINE void block_rows(const Tile& t, int64_t first_row, int64_t end_row, int64_t lane, float* sums) {
  constexpr int kWindow = (kTaps + kClasses - 1) / kClasses;
  constexpr bool kOneClass = kClasses == 1;
  const D d;
  const E elements;
  const DepthwiseDots& r = t.dots;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d)), pitch = r.dilation * r.x_place * E::kBytes,
                step = r.step * r.x_place * E::kBytes, y_step = r.y_place * E::kBytes,
                tap_row = r.x_tap_row * E::kBytes;
  RG_EACH(RG_CLEAR)
  for (int64_t row = first_row; row < end_row; ++row) {
    int64_t q = t.some_begin, low = kOneClass ? 0 : kTaps, high = low;
    const std::byte* HWY_RESTRICT y = r.y + (row * r.y_row + lane) * E::kBytes + (q - r.first) * y_step;
    const std::byte* HWY_RESTRICT x0 = r.x + (t.x + row * r.x_row + lane) * E::kBytes + q * step;
    [[maybe_unused]] const std::byte* HWY_RESTRICT x1 = x0 + tap_row;
    [[maybe_unused]] const std::byte* HWY_RESTRICT x2 = x1 + tap_row;
    [[maybe_unused]] const std::byte* HWY_RESTRICT x3 = x2 + tap_row;
    const auto advance = [&] {
      ++q;
      y += y_step;
      x0 += step;
      x1 += step;
      x2 += step;
      x3 += step;
    };
    for (; q < t.some_end; advance()) {
      if (q == t.all_begin && q < t.all_end) {
        RG_EACH(RG_WINDOW)
        for (; q < t.all_end; advance()) {
          if constexpr (kClasses <= 2) {
            y0 = elements.load(d, y);
            RG_SHARE_ROW(0, a, x0)
            RG_SHARE_ROW(1, b, x1)
            RG_SHARE_ROW(2, c, x2)
            RG_SHARE_ROW(3, e, x3)
            y6 = y5, y5 = y4, y4 = y3, y3 = y2, y2 = y1, y1 = y0;
          } else {
            RG_PLACES
            RG_EACH(RG_ADD)
          }
        }
        if (q == t.some_end) break;
      }
      if constexpr (kClasses == 2) {
        RG_PLACES
        RG_EACH(RG_ADD_LIVE)
        continue;
      }
      // The live taps are neighbours; from step to step later ones with one class, else earlier ones.
      while (kOneClass && high < kTaps && t.begin[static_cast<size_t>(high)] <= q) ++high;
      while (kOneClass && low < high && t.end[static_cast<size_t>(low)] <= q) ++low;
      while (!kOneClass && low > 0 && t.begin[static_cast<size_t>(low - 1)] <= q) --low;
      while (!kOneClass && high > 0 && t.end[static_cast<size_t>(high - 1)] <= q) --high;
      if (low >= high) continue;
      RG_PLACES
      if (low == 0) {
        switch (high - 1) {
          RG_EACH_DOWN(RG_ADD_FROM)
          default:
            break;
        }
      } else if (high == kTaps) {
        switch (low) {
          RG_EACH(RG_ADD_FROM)
          default:
            break;
        }
      } else {
        RG_EACH(RG_ADD_WITHIN)
      }
    }
  }
  RG_EACH(RG_STORE)
}

template <int kTapRows, int kTaps, int kClasses, class E>
HWY_NOINLINE void tile(const DepthwiseDots& r, int64_t first_row, int64_t first_tap) {
  const auto n = static_cast<int64_t>(hn::Lanes(D()));
  const Tile t = tile_of<kTaps, kClasses>(r, first_row, first_tap);
  float* const sums = r.sums + (first_row * r.taps + first_tap) * n;
  const int64_t some =
      r.blocks == 1 ? r.rows : (kFewestPositions + r.count - 1) / std::max<int64_t>(r.count, 1);
  for (int64_t row = 0; row < r.rows; row += some)
    for (int64_t i = 0; i < r.blocks; ++i)
      block_rows<kTapRows, kTaps, kClasses, E>(t, row, std::min(row + some, r.rows),
                                               i + 1 < r.blocks ? i * n : r.last_block,
                                               sums + i * r.block_sums);
}

template <int kTaps, int kClasses, class E>
void tile_rows(const DepthwiseDots& r, int64_t first_tap) {
  // Of 16 registers one holds x, and some the y of earlier steps.
  constexpr int kSums = kFewRegisters ? 15 - (kTaps + kClasses - 1) / kClasses : kDepthwiseTapSums;
  constexpr int kFit = std::min<int>(std::min<int>(kSums, kDepthwiseTapSums) / kTaps, kDepthwiseTapRows);
  for (int64_t row = 0; row < r.tap_rows; row += kFit) {
    const int64_t rows = std::min<int64_t>(r.tap_rows - row, kFit);
    if (rows == 1) tile<1, kTaps, kClasses, E>(r, row, first_tap);
    if constexpr (kFit >= 2) {
      if (rows == 2) tile<2, kTaps, kClasses, E>(r, row, first_tap);
    }
    if constexpr (kFit >= 3) {
      if (rows == 3) tile<3, kTaps, kClasses, E>(r, row, first_tap);
    }
    if constexpr (kFit >= 4) {
      if (rows == 4) tile<4, kTaps, kClasses, E>(r, row, first_tap);
    }
  }
}

template <int kTaps, class E>
void tile_classes(const DepthwiseDots& r, int64_t first_tap) {
  // Reading FP32 again for each tap costs less than a window that leaves registers for one row of taps only.
  constexpr bool kOneClass = !kFewRegisters || kTaps < 6 || E::kBytes < 4;
  if (kTaps == 1 || (kOneClass && r.step == r.dilation)) return tile_rows<kTaps, 1, E>(r, first_tap);
  if (kTaps == 2 || r.step == 2 * r.dilation) return tile_rows<kTaps, std::min(kTaps, 2), E>(r, first_tap);
  tile_rows<kTaps, kTaps, E>(r, first_tap);
}

template <class E>
void dots(const DepthwiseDots& r) {
  using Taps = void (*)(const DepthwiseDots&, int64_t);
  static constexpr Taps kWidths[] = {tile_classes<1, E>, tile_classes<2, E>, tile_classes<3, E>,
                                     tile_classes<4, E>, tile_classes<5, E>, tile_classes<6, E>,
                                     tile_classes<7, E>};
  static_assert(std::size(kWidths) == kDepthwiseTileTaps);
  int64_t left = (r.taps + kDepthwiseTileTaps - 1) / kDepthwiseTileTaps;
  for (int64_t tap = 0; tap < r.taps; --left) {
    const int64_t width = (r.taps - tap + left - 1) / left;
    kWidths[width - 1](r, tap);
    tap += width;
  }
}

void depthwise_dots(const DepthwiseDots& r) {
  if (r.type == DType::kBF16) return dots<Elements<DType::kBF16>>(r);
  if (r.type == DType::kF16) return dots<Elements<DType::kF16>>(r);
  dots<Elements<DType::kF32>>(r);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, depthwise_dots)

void depthwise_dots(const DepthwiseDots& dots) { chosen_depthwise_dots()(dots); }

}  // namespace retrograd::kernels::cpu
#endif
