// SPDX-License-Identifier: Apache-2.0
// Tiles of rows of y with vectors along W, for instruction sets with masked loads.
#include "kernels/cpu/depthwise_wide_dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_wide_dots.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/depthwise_wide-inl.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

// kRows rows of y × one vector; kAllRegular: only planes that are is_regular().
template <int kLanes, int kTapRows, int kRows, bool kAllRegular, bool kPair = false>
class WideDots : WideRows<kLanes, kTapRows, kRows, kPair> {
  using Base = WideRows<kLanes, kTapRows, kRows, kPair>;
  using Base::both, Base::kSources;
  using typename Base::D, typename Base::Rows, typename Base::V, typename Base::Whole;

  // Floats from a plane to the other one of a pair.
  struct Second {
    int64_t x, y, sums;
  };

 public:
  static bool is_regular(const DepthwiseWideDots& r) {
    return Base::is_regular(r.rows, r.first_row, r.x_rows);
  }

  static HWY_NOINLINE void planes(const DepthwiseWideDots& r) {
    Place<D> places[kPlaces];
    const bool all_fit = (r.width + kLanes - 1) / kLanes * r.taps <= kPlaces;
    if (all_fit)
      for (int64_t column = 0, i = 0; column < r.width; column += kLanes)
        for (int64_t t = 0; t < r.taps; ++t) places[i++] = place(r, column, r.offsets[t]);
    for (int64_t plane = 0; plane < r.planes; plane += kPair ? 2 : 1) {
      // A last plane alone is its own second.
      const bool has_second = plane + 1 < r.planes;
      const Second second{has_second ? r.x_plane : 0, has_second ? r.y_plane : 0,
                          has_second ? r.sum_plane : 0};
      for (int64_t row = 0; row < r.rows; row += kRows) {
        const Place<D>* at = places;
        const int64_t from = row + r.first_row;
        const float* x = r.x + plane * r.x_plane + from * r.x_row;
        const float* y = r.y + plane * r.y_plane + row * r.y_row;
        float* sums = r.sums + plane * r.sum_plane;
        const int64_t begin = std::max<int64_t>(-from, 0), end = std::min<int64_t>(r.x_rows - from, kSources);
        for (int64_t column = 0; column < r.width; column += kLanes) {
          if (!all_fit)
            for (int64_t t = 0; t < r.taps; ++t) places[t] = place(r, column, r.offsets[t]);
          const Rows rows{x + column, r.x_row, begin, end};
          if (kAllRegular || Base::is_regular_tile(rows, r.rows - row)) {
            run<true>(r, rows, second, at, y + column, sums, r.width - column, kRows);
          } else if constexpr (!kAllRegular) {
            run<false>(r, rows, second, at, y + column, sums, r.width - column, r.rows - row);
          }
          if (all_fit) at += r.taps;
        }
      }
    }
  }

 private:
  static HWY_INLINE Place<D> place(const DepthwiseWideDots& r, int64_t column, int64_t offset) {
    const int64_t at = column + offset;
    return place_of<D>(-at, std::min(r.x_width - at, r.width - column));
  }

  template <bool kRegular>
  static HWY_INLINE void run(const DepthwiseWideDots& r, Rows rows, const Second& second,
                             const Place<D>* HWY_RESTRICT places, const float* HWY_RESTRICT y_at,
                             float* HWY_RESTRICT sums, int64_t left, int64_t y_rows) {
    const D d;
    V y[kRows];
    const auto load_y = [&](const auto& load) HWY_ATTR {
      each(Indices<kRows>(), [&](auto j) HWY_ATTR {
        const float* HWY_RESTRICT p = y_at + j * r.y_row;
        y[j] = kRegular || j < y_rows ? held(both(load(p), [&]() HWY_ATTR { return load(p + second.y); }))
                                      : hn::Zero(Whole());
      });
    };
    if (left >= kLanes) {
      load_y([](const float* p) HWY_ATTR { return hn::LoadU(D(), p); });
    } else {
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      load_y([&](const float* p) HWY_ATTR { return hn::MaskedLoad(mask, D(), p); });
    }
    for (int64_t depth = 0; depth < r.depths; ++depth) {
      float* HWY_RESTRICT sum = sums + depth * r.sum_depth;
      const Place<D>* HWY_RESTRICT place = places;
      for (int64_t t = 0; t < r.taps; ++t, ++place, sum += kTapRows * kLanes) {
        if (place->dead) continue;
        const float* HWY_RESTRICT at = rows.top + r.offsets[t];
        with_load(*place, [&](const auto& load) HWY_ATTR { add<kRegular>(rows, second, at, y, sum, load); });
      }
      rows.top += r.x_depth;
    }
  }

  template <bool kRegular, class Load>
  static HWY_INLINE void add(const Rows& rows, const Second& second, const float* HWY_RESTRICT at,
                             const V (&y)[kRows], float* HWY_RESTRICT sum, const Load& load) {
    const D d;
    V sums[kTapRows];
    each(Indices<kTapRows>(), [&](auto h) HWY_ATTR {
      const float* p = sum + h * kLanes;
      sums[h] = both(hn::Load(d, p), [&]() HWY_ATTR { return hn::Load(D(), p + second.sums); });
    });
    const auto add_source = [&](auto i) HWY_ATTR {
      const float* HWY_RESTRICT p = at + i * rows.pitch;
      const V v = held(both(load(p), [&]() HWY_ATTR { return load(p + second.x); }));
      each(Indices<kTapRows>(), [&](auto h) HWY_ATTR {
        constexpr int kRow = i - h;
        if constexpr (kRow >= 0 && kRow < kRows) sums[h] = hn::MulAdd(y[kRow], v, sums[h]);
      });
    };
    Base::template each_source<kRegular>(rows, add_source);
    each(Indices<kTapRows>(), [&](auto h) HWY_ATTR {
      float* p = sum + h * kLanes;
      if constexpr (kPair) {
        hn::Store(hn::LowerHalf(d, sums[h]), d, p);
        hn::Store(hn::UpperHalf(d, sums[h]), d, p + second.sums);
      } else {
        hn::Store(sums[h], d, p);
      }
    });
  }
};

template <int kLanes, int kTapRows>
void tiles(const DepthwiseWideDots& r) {
  // Planes of real networks are 7, 14, 28 … high.
  constexpr bool kPair = kTapRows <= 3 && kLanes == 8 && hn::MaxLanes(Tag<16>()) == 16;
  using Pairs = WideDots<kLanes, kTapRows, 7, true, kPair>;
  if constexpr (kPair)
    if (r.width <= 8 && r.rows == 7 && Pairs::is_regular(r)) return Pairs::planes(r);
  using Sevens = WideDots<kLanes, kTapRows, 7, true>;
  if (Sevens::is_regular(r)) return Sevens::planes(r);
  WideDots<kLanes, kTapRows, kFewRegisters ? 7 : 8, false>::planes(r);
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
void add_lanes(const float* sums, int64_t count, float* out) {
  const Tag<kLanes> d;
  for (int64_t i = 0; i < count; ++i) out[i] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + i * kLanes)));
}

void add_wide_lanes(const float* sums, int64_t lanes, int64_t count, float* out) {
  if (lanes == 16) {
    add_lanes<HWY_MIN(16, hn::MaxLanes(Tag<16>()))>(sums, count, out);
  } else {
    add_lanes<8>(sums, count, out);
  }
}

#else
void depthwise_wide_dots(const DepthwiseWideDots&) {}
void add_wide_lanes(const float*, int64_t, int64_t, float*) {}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(depthwise_wide_dots);
HWY_EXPORT(add_wide_lanes);

struct Chosen {
  void (*dots)(const DepthwiseWideDots&);
  void (*add)(const float*, int64_t, int64_t, float*);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(depthwise_wide_dots), RG_CHOSEN(add_wide_lanes)};
  return instance;
}

}  // namespace

void depthwise_wide_dots(const DepthwiseWideDots& planes) { chosen().dots(planes); }
void add_wide_lanes(const float* sums, int64_t lanes, int64_t count, float* out) {
  chosen().add(sums, lanes, count, out);
}

}  // namespace retrograd::kernels::cpu
#endif
