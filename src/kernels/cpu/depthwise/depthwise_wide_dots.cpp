// SPDX-License-Identifier: Apache-2.0
// Tiles of rows of y with vectors along W, for instruction sets with masked loads.
#include "kernels/cpu/depthwise/depthwise_wide_dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_wide_dots.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/depthwise/depthwise_wide-inl.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;

#if RG_HAS_MASKED_LOADS

constexpr int kMostLanes = HWY_MIN(16, static_cast<int>(hn::MaxLanes(Tag<16>())));
static_assert(has_lanes(kMostLanes, kShape.wide_lanes(16)));

// kRows rows of y × one vector; kAllRegular: only tiles that are regular; kMasked: places outside are left
// out. Sums are kSumLanes apart.
template <int kLanes, int kSumLanes, int kTapRows, int kRows, bool kAllRegular, bool kPair,
          bool kMasked = false>
class WideDots : WideRows<kLanes, kTapRows, kRows, kPair> {
  using Base = WideRows<kLanes, kTapRows, kRows, kPair>;
  using Base::both, Base::kSources;
  using typename Base::D, typename Base::Rows, typename Base::V, typename Base::Whole;

  // Floats from a plane to the other one of a pair.
  struct Second {
    int64_t x, y;
  };

 public:
  // Columns [begin, end) of a group.
  static HWY_NOINLINE void columns(const DepthwiseWideDots& r, const TileGroup& g,
                                   const Place<D>* HWY_RESTRICT places, int64_t begin, int64_t end) {
    for (int64_t plane = g.plane; plane < g.plane + g.planes; plane += kPair ? 2 : 1) {
      // A last plane alone is its own second; nobody reads the sums of that.
      const bool has_second = plane + 1 < g.plane + g.planes;
      const Second second{has_second ? r.x_plane : 0, has_second ? r.y_plane : 0};
      float* sums = r.sums + (kPair ? plane / 2 : plane) * r.sum_plane;
      for (int64_t tile = 0, row = g.row; tile < g.tiles; ++tile, row += kRows) {
        const int64_t from = row + r.first_row;
        const float* x = r.x + plane * r.x_plane + from * r.x_row;
        const float* y = r.y + plane * r.y_plane + row * r.y_row;
        if (end <= kLanes) {
          prefetch_ahead(x, kRows * r.x_row);
          prefetch_ahead(y, kRows * r.y_row);
          if (kPair) prefetch_ahead(x + r.x_plane, kRows * r.x_row);
          if (kPair) prefetch_ahead(y + r.y_plane, kRows * r.y_row);
        }
        const Place<D>* HWY_RESTRICT at = places;
        Rows rows{x, r.x_row, std::max<int64_t>(-from, 0), std::min<int64_t>(r.x_rows - from, kSources)};
        for (int64_t column = begin; column < end; column += kLanes, at += r.taps) {
          rows.top = x + column;
          if (kAllRegular || Base::is_regular(rows, r.rows - row)) {
            run<true>(r, rows, second, at, y + column, sums, r.width - column, kRows);
          } else if constexpr (!kAllRegular) {
            run<false>(r, rows, second, at, y + column, sums, r.width - column, r.rows - row);
          }
        }
      }
    }
  }

 private:
  template <bool kRegular>
  static HWY_INLINE void run(const DepthwiseWideDots& r, Rows rows, const Second& second,
                             const Place<D>* HWY_RESTRICT places, const float* HWY_RESTRICT y_at,
                             float* HWY_RESTRICT sums, int64_t left, int64_t y_rows) {
    const D d;
    V y[kRows];
    const auto load_y = [&](const auto& load) RG_INLINED {
      each(Indices<kRows>(), [&](auto j) RG_INLINED {
        const float* HWY_RESTRICT p = y_at + j * r.y_row;
        y[j] = kRegular || j < y_rows ? held(both(load(p), [&]() RG_INLINED { return load(p + second.y); }))
                                      : hn::Zero(Whole());
      });
    };
    if (left >= kLanes) {
      load_y([](const float* p) RG_INLINED { return hn::LoadU(D(), p); });
    } else {
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      load_y([&](const float* p) RG_INLINED { return hn::MaskedLoad(mask, D(), p); });
    }
    for (int64_t depth = 0; depth < r.depths; ++depth) {
      float* HWY_RESTRICT sum = sums + depth * r.sum_depth;
      const Place<D>* HWY_RESTRICT place = places;
      for (int64_t tap = 0; tap < r.taps; ++tap, ++place, sum += kTapRows * kSumLanes) {
        if (place->dead) continue;
        const float* HWY_RESTRICT at = rows.top + r.offsets[tap];
        with_lanes(*place, [&](const auto& lanes)
                               RG_INLINED { add<kRegular>(rows, second, at, y, y_rows, sum, lanes); });
      }
      rows.top += r.x_depth;
    }
  }

  template <bool kRegular, class Lanes>
  static HWY_INLINE void add(const Rows& rows, const Second& second, const float* HWY_RESTRICT at,
                             const V (&y)[kRows], [[maybe_unused]] int64_t y_rows, float* HWY_RESTRICT sum,
                             const Lanes& lanes) {
    constexpr bool kSkips = kMasked && !Lanes::kAll;  // lanes
    V sums[kTapRows];
    each(Indices<kTapRows>(), [&](auto h) RG_INLINED { sums[h] = hn::Load(Whole(), sum + h * kSumLanes); });
    [[maybe_unused]] auto inside = hn::FirstN(Whole(), 0);
    if constexpr (kSkips) {
      const auto ones = [&]() RG_INLINED { return lanes.only(hn::Set(D(), 1)); };
      inside = hn::Ne(both(ones(), ones), hn::Zero(Whole()));
    }
    const auto add_source = [&](auto i) RG_INLINED {
      const float* HWY_RESTRICT p = at + i * rows.pitch;
      const V v = held(both(lanes.load(p), [&]() RG_INLINED { return lanes.load(p + second.x); }));
      each(Indices<kTapRows>(), [&](auto h) RG_INLINED {
        constexpr int kRow = i - h;
        if constexpr (kRow < 0 || kRow >= kRows) {
        } else if (!kMasked || kRegular || kRow < y_rows) {
          if constexpr (kSkips) {
            sums[h] = masked_mul_add(inside, y[kRow], v, sums[h]);
          } else {
            sums[h] = hn::MulAdd(y[kRow], v, sums[h]);
          }
        }
      });
    };
    Base::template each_source<kRegular>(rows, add_source);
    each(Indices<kTapRows>(), [&](auto h) RG_INLINED { hn::Store(sums[h], Whole(), sum + h * kSumLanes); });
  }
};

constexpr int kMostRows = kFewRegisters ? 7 : 8;

// Who makes the tiles of a group.
template <int kLanes, int kSumLanes, int kTapRows, bool kPair, int... I>
typename Columns<DepthwiseWideDots, kLanes>::Tile tile_of(std::integer_sequence<int, I...>, bool masked,
                                                          const TileGroup& g) {
  constexpr int kLeast = least_rows(kTapRows, kMostRows);
  static constexpr typename Columns<DepthwiseWideDots, kLanes>::Tile kTiles[] = {
      WideDots<kLanes, kSumLanes, kTapRows, kLeast + I, true, kPair>::columns...};
  if (masked) return WideDots<kLanes, kSumLanes, kTapRows, kMostRows, false, kPair, true>::columns;
  if (g.regular) return kTiles[g.height - kLeast];
  return WideDots<kLanes, kSumLanes, kTapRows, kMostRows, false, kPair>::columns;
}

template <int kLanes, int kSumLanes, int kTapRows, bool kPair>
void tiles_of(const DepthwiseWideDots& r) {
  constexpr int kLeast = least_rows(kTapRows, kMostRows);
  const auto each_group = [&](int64_t step, bool together, const auto& run) {
    // Masked tiles are all of kMostRows: none is regular.
    each_tile_group<kTapRows>(r.planes, step, together, r.rows, r.first_row, r.x_rows,
                              r.masked ? kMostRows + 1 : kLeast, kMostRows, run);
  };
  in_columns<DepthwiseWideDots, kLanes, kPair>(r, r.width, each_group, [&](const TileGroup& g, auto lanes) {
    return tile_of<lanes(), kSumLanes, kTapRows, kPair>(Indices<kMostRows - kLeast + 1>(), r.masked, g);
  });
}

template <int kLanes, int kTapRows>
void tiles(const DepthwiseWideDots& r) {
  if constexpr (kShape.wide_planes(kLanes, kTapRows) > 1)
    if (r.pairs) return tiles_of<kLanes, kMostLanes, kTapRows, true>(r);
  tiles_of<kLanes, kLanes, kTapRows, false>(r);
}

template <int kLanes>
void dots(const DepthwiseWideDots& r) {
  using Planes = void (*)(const DepthwiseWideDots&);
  static constexpr Planes kTiles[] = {tiles<kLanes, 1>, tiles<kLanes, 2>, tiles<kLanes, 3>, tiles<kLanes, 4>,
                                      tiles<kLanes, 5>, tiles<kLanes, 6>, tiles<kLanes, 7>};
  static_assert(std::size(kTiles) == kMostWideTapRows);
  kTiles[r.tap_rows - 1](r);
}

void depthwise_wide_dots(const DepthwiseWideDots& r) {
  if (r.lanes == 16) {
    dots<HWY_MIN(16, hn::MaxLanes(Tag<16>()))>(r);
  } else {
    dots<8>(r);
  }
}

template <int kLanes>
void add_lanes(const float* sums, int64_t pitch, int64_t count, float* out) {
  const Tag<kLanes> d;
  for (int64_t i = 0; i < count; ++i) out[i] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + i * pitch)));
}

void add_wide_lanes(const float* sums, int64_t lanes, bool pairs, int64_t planes, int64_t taps, float* out) {
  for (int64_t plane = 0; plane < planes; ++plane, out += taps) {
    if (pairs) {
      add_lanes<8>(sums + (plane / 2 * 2 * taps + plane % 2) * lanes, 2 * lanes, taps, out);
    } else if (lanes == 16) {
      add_lanes<kMostLanes>(sums + plane * taps * lanes, lanes, taps, out);
    } else {
      add_lanes<8>(sums + plane * taps * lanes, lanes, taps, out);
    }
  }
}

#else
void depthwise_wide_dots(const DepthwiseWideDots&) {}
void add_wide_lanes(const float*, int64_t, bool, int64_t, int64_t, float*) {}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, depthwise_wide_dots)
RG_EXPORT(RG_CHOSEN, add_wide_lanes)

void depthwise_wide_dots(const DepthwiseWideDots& planes) { chosen_depthwise_wide_dots()(planes); }
void add_wide_lanes(const float* sums, int64_t lanes, bool pairs, int64_t planes, int64_t taps, float* out) {
  chosen_add_wide_lanes()(sums, lanes, pairs, planes, taps, out);
}

}  // namespace retrograd::kernels::cpu
#endif
