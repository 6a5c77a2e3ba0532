// SPDX-License-Identifier: Apache-2.0
// Tiles of taps with planes or channels as lanes, once for every instruction set.
#include "kernels/cpu/depthwise/depthwise_dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_dots.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// Named accumulators, as in depthwise_rows.cpp: a, b, c and e are rows of taps.
#define RG_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#define RG_EACH_DOWN(DO) DO(6) DO(5) DO(4) DO(3) DO(2) DO(1) DO(0)
#define RG_CLEAR(i) [[maybe_unused]] V a##i = hn::Zero(d), b##i = a##i, c##i = a##i, e##i = a##i;
#define RG_ADD(i)                                                                         \
  if constexpr (i < kTaps) {                                                              \
    a##i = hn::MulAdd(y, hn::LoadU(d, x0 + i * pitch), a##i);                             \
    if constexpr (kTapRows > 1) b##i = hn::MulAdd(y, hn::LoadU(d, x1 + i * pitch), b##i); \
    if constexpr (kTapRows > 2) c##i = hn::MulAdd(y, hn::LoadU(d, x2 + i * pitch), c##i); \
    if constexpr (kTapRows > 3) e##i = hn::MulAdd(y, hn::LoadU(d, x3 + i * pitch), e##i); \
  }
// A jump to the first live tap, then multiply-adds only.
#define RG_ADD_FROM(i) \
  case i:              \
    RG_ADD(i) [[fallthrough]];
#define RG_ADD_WITHIN(i) \
  if (i >= low && i < high) RG_ADD(i)
#define RG_STORE_ROW(sum, row, i)                    \
  {                                                  \
    float* at = sums + (row * t.sum_row + i) * n;    \
    hn::Store(hn::Add(hn::Load(d, at), sum), d, at); \
  }
#define RG_STORE(i)                                      \
  if constexpr (i < kTaps) {                             \
    RG_STORE_ROW(a##i, 0, i)                             \
    if constexpr (kTapRows > 1) RG_STORE_ROW(b##i, 1, i) \
    if constexpr (kTapRows > 2) RG_STORE_ROW(c##i, 2, i) \
    if constexpr (kTapRows > 3) RG_STORE_ROW(e##i, 3, i) \
  }

// Positions that are added for a block of lanes before the next has its turn: fewer would spend their time on
// taking up sums.
constexpr int64_t kFewestPositions = 32;

// Some neighbouring taps of the whole.
struct Tile {
  const DepthwiseDots& dots;
  const float* x;  // of tap 0 of the tile at position 0
  const int64_t* begin;
  const int64_t* end;
  float* sums;
  int64_t sum_row;  // taps
};

// Rows of one block of lanes.
template <int kTapRows, int kTaps, bool kDense>
HWY_INLINE void block_rows(const Tile& t, int64_t first_row, int64_t end_row, int64_t lane, float* sums) {
  const D d;
  const DepthwiseDots& r = t.dots;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d)), pitch = kDense ? n : r.dilation * r.x_place;
  const int64_t last = r.first + r.count, advance = r.step * r.x_place;
  // Positions at which all taps are live.
  const int64_t full_begin = std::clamp(t.begin[0], r.first, last);
  const int64_t full_end = std::clamp(t.end[kTaps - 1], full_begin, last);
  RG_EACH(RG_CLEAR)
  for (int64_t row = first_row; row < end_row; ++row) {
    const float* HWY_RESTRICT x_row = t.x + row * r.x_row + lane;
    const float* HWY_RESTRICT y_row = r.y + row * r.y_row - r.first * r.y_place + lane;
    int64_t low = kTaps, high = kTaps;
    for (int64_t j = r.first; j < last; ++j) {
      if (j == full_begin && full_begin < full_end) {
        const float* HWY_RESTRICT x0 = x_row + j * advance;
        [[maybe_unused]] const float* HWY_RESTRICT x1 = x0 + r.x_tap_row;
        [[maybe_unused]] const float* HWY_RESTRICT x2 = x1 + r.x_tap_row;
        [[maybe_unused]] const float* HWY_RESTRICT x3 = x2 + r.x_tap_row;
        for (; j < full_end; ++j) {
          const V y = hn::LoadU(d, y_row + j * r.y_place);
          RG_EACH(RG_ADD)
          x0 += advance;
          x1 += advance;
          x2 += advance;
          x3 += advance;
        }
        if (j == last) break;
      }
      while (low > 0 && t.begin[low - 1] <= j) --low;
      while (high > 0 && t.end[high - 1] <= j) --high;
      if (low >= high) continue;
      const float* HWY_RESTRICT x0 = x_row + j * advance;
      [[maybe_unused]] const float* HWY_RESTRICT x1 = x0 + r.x_tap_row;
      [[maybe_unused]] const float* HWY_RESTRICT x2 = x1 + r.x_tap_row;
      [[maybe_unused]] const float* HWY_RESTRICT x3 = x2 + r.x_tap_row;
      const V y = hn::LoadU(d, y_row + j * r.y_place);
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

template <int kTapRows, int kTaps, bool kDense>
HWY_NOINLINE void tile(const Tile& t) {
  const DepthwiseDots& r = t.dots;
  const auto n = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t some =
      r.blocks == 1 ? r.rows : (kFewestPositions + r.count - 1) / std::max<int64_t>(r.count, 1);
  for (int64_t row = 0; row < r.rows; row += some)
    for (int64_t i = 0; i < r.blocks; ++i)
      block_rows<kTapRows, kTaps, kDense>(t, row, std::min(row + some, r.rows),
                                          i + 1 < r.blocks ? i * n : r.last_block, t.sums + i * r.block_sums);
}

template <int kTaps, bool kDense>
void tile_rows(const Tile& t) {
  constexpr int kFit = std::min<int>(kDepthwiseTapSums / kTaps, kDepthwiseTapRows);
  switch (t.dots.tap_rows) {
    case 4:
      if constexpr (kFit >= 4) return tile<4, kTaps, kDense>(t);
      [[fallthrough]];
    case 3:
      if constexpr (kFit >= 3) return tile<3, kTaps, kDense>(t);
      [[fallthrough]];
    case 2:
      if constexpr (kFit >= 2) return tile<2, kTaps, kDense>(t);
      [[fallthrough]];
    default:
      return tile<1, kTaps, kDense>(t);
  }
}

template <bool kDense>
void dots(const DepthwiseDots& r) {
  using Rows = void (*)(const Tile&);
  static constexpr Rows kWidths[] = {tile_rows<1, kDense>, tile_rows<2, kDense>, tile_rows<3, kDense>,
                                     tile_rows<4, kDense>, tile_rows<5, kDense>, tile_rows<6, kDense>,
                                     tile_rows<7, kDense>};
  static_assert(std::size(kWidths) == kDepthwiseTileTaps);
  const int64_t n = static_cast<int64_t>(hn::Lanes(D()));
  int64_t left = (r.taps + kDepthwiseTileTaps - 1) / kDepthwiseTileTaps;
  for (int64_t tap = 0; tap < r.taps; --left) {
    const int64_t width = (r.taps - tap + left - 1) / left;
    kWidths[width - 1]({.dots = r,
                        .x = r.x + (r.start + tap * r.dilation) * r.x_place,
                        .begin = r.begin + tap,
                        .end = r.end + tap,
                        .sums = r.sums + tap * n,
                        .sum_row = r.taps});
    tap += width;
  }
}

void depthwise_dots(const DepthwiseDots& r) {
  if (r.dilation == 1 && r.x_place == static_cast<int64_t>(hn::Lanes(D()))) {
    dots<true>(r);
  } else {
    dots<false>(r);
  }
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
