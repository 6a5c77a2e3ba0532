// SPDX-License-Identifier: Apache-2.0
// Tiles of rows with vectors along W, for instruction sets with masked loads.
#include "kernels/cpu/depthwise_wide.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_wide.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/depthwise_wide-inl.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

int64_t wide_lanes(int64_t width) {
  const auto most = static_cast<int64_t>(hn::Lanes(Tag<16>()));
  // Halves of vectors where they waste much less of a row: two of them cost a quarter more than one whole.
  const bool half = most == 16 && (width + 7) / 8 * 8 * 4 <= (width + 15) / 16 * 16 * 3;
  return half ? 8 : most;
}

// kRows rows of results × one vector of each phase; kAllRegular: only planes that are is_regular().
template <int kLanes, int kTapRows, int kPhases, int kRows, bool kAllRegular, bool kPair = false>
class WideTile : WideRows<kLanes, kTapRows, kRows, kPair> {
  using Base = WideRows<kLanes, kTapRows, kRows, kPair>;
  using Base::both, Base::kSources;
  using typename Base::D, typename Base::Rows, typename Base::V, typename Base::Whole;
  using Sums = V[kPhases][kRows];

  // Floats from a plane to the other one of a pair.
  struct Second {
    int64_t source, weights, out;
  };

 public:
  static bool is_regular(const DepthwiseWide& r) {
    return Base::is_regular(r.rows, r.first_row, r.source_rows);
  }

  static HWY_NOINLINE void planes(const DepthwiseWide& r) {
    const int64_t positions = (r.width + kPhases - 1) / kPhases, taps = r.taps[0] + r.taps[1];
    Place<D> places[kPlaces];
    const bool all_fit = (positions + kLanes - 1) / kLanes * taps <= kPlaces;
    if (all_fit)
      for (int64_t column = 0, i = 0; column < positions; column += kLanes)
        for (int64_t t = 0; t < taps; ++t) places[i++] = place(r, column + r.offsets[t]);
    for (int64_t plane = 0; plane < r.planes; plane += kPair ? 2 : 1) {
      // A last plane alone is its own second.
      const bool has_second = plane + 1 < r.planes;
      const Second second{has_second ? r.source_plane : 0, has_second ? r.weight_plane : 0,
                          has_second ? r.out_plane : 0};
      for (int64_t row = 0; row < r.rows; row += kRows) {
        const Place<D>* at = places;
        const int64_t from = row + r.first_row;
        const float* source = r.source + plane * r.source_plane + from * r.source_row;
        const float* weights = r.weights + plane * r.weight_plane;
        float* out = r.out + plane * r.out_plane + row * r.out_row;
        const int64_t begin = std::max<int64_t>(-from, 0),
                      end = std::min<int64_t>(r.source_rows - from, kSources);
        for (int64_t column = 0; column < positions; column += kLanes) {
          if (!all_fit)
            for (int64_t t = 0; t < taps; ++t) places[t] = place(r, column + r.offsets[t]);
          const Rows rows{source + column, r.source_row, begin, end};
          if (kAllRegular || Base::is_regular_tile(rows, r.rows - row)) {
            run<true>(r, rows, second, at, weights, out, column, kRows);
          } else if constexpr (!kAllRegular) {
            run<false>(r, rows, second, at, weights, out, column, r.rows - row);
          }
          if (all_fit) at += taps;
        }
      }
    }
  }

 private:
  static HWY_INLINE Place<D> place(const DepthwiseWide& r, int64_t at) {
    return place_of<D>(-at, r.source_width - at);
  }

  template <bool kRegular>
  static HWY_INLINE void run(const DepthwiseWide& r, Rows rows, const Second& second,
                             const Place<D>* HWY_RESTRICT places, const float* HWY_RESTRICT weights,
                             float* out, int64_t column, int64_t stored) {
    Sums sums;
    each(Indices<kPhases * kRows>(),
         [&](auto i) HWY_ATTR { sums[i / kRows][i % kRows] = hn::Zero(Whole()); });
    for (int64_t depth = 0; depth < r.depths; ++depth) {
      const float* HWY_RESTRICT w = weights;
      const int64_t* HWY_RESTRICT offset = r.offsets;
      const Place<D>* HWY_RESTRICT place = places;
      each(Indices<kPhases>(), [&](auto phase) HWY_ATTR {
        for (const int64_t* end = offset + r.taps[phase]; offset < end; ++offset, ++place, w += kTapRows) {
          if (place->dead) continue;
          const float* HWY_RESTRICT at = rows.top + *offset;
          with_load(*place, [&](const auto& load)
                                HWY_ATTR { add<kRegular>(rows, second, at, w, sums[phase], load); });
        }
      });
      rows.top += r.source_depth;
      weights += r.weight_depth;
    }
    store<kRegular>(r, second, column, stored, sums, out);
  }

  template <bool kRegular, class Load>
  static HWY_INLINE void add(const Rows& rows, const Second& second, const float* HWY_RESTRICT at,
                             const float* HWY_RESTRICT weights, V (&sums)[kRows], const Load& load) {
    V w[kTapRows];
    each(Indices<kTapRows>(), [&](auto h) HWY_ATTR {
      w[h] = held(both(hn::Set(D(), weights[h]),
                       [&]() HWY_ATTR { return hn::Set(D(), weights[second.weights + h]); }));
    });
    const auto add_source = [&](auto i) HWY_ATTR {
      const float* HWY_RESTRICT p = at + i * rows.pitch;
      const V v = held(both(load(p), [&]() HWY_ATTR { return load(p + second.source); }));
      each(Indices<kTapRows>(), [&](auto h) HWY_ATTR {
        constexpr int kRow = i - h;
        if constexpr (kRow >= 0 && kRow < kRows) sums[kRow] = hn::MulAdd(w[h], v, sums[kRow]);
      });
    };
    Base::template each_source<kRegular>(rows, add_source);
  }

  template <bool kRegular>
  static HWY_INLINE void store(const DepthwiseWide& r, const Second& second, int64_t column, int64_t rows,
                               Sums& sums, float* out) {
    const D d;
    const int64_t left = r.width - column * kPhases;
    float* HWY_RESTRICT to = out + column * kPhases;
    const auto each_row = [&](const auto& body) HWY_ATTR {
      each(Indices<kRows>(), [&](auto j) HWY_ATTR {
        if (kRegular || j < rows) body(j, to + j * r.out_row);
      });
    };
    if constexpr (kPair) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, kLanes)));
      each_row([&](auto j, float* at) HWY_ATTR {
        hn::BlendedStore(hn::LowerHalf(d, sums[0][j]), mask, d, at);
        // g++ would make one instruction of both, which faults at masked places, unlike a masked store.
        hn::BlendedStore(held(hn::UpperHalf(d, sums[0][j])), mask, d, at + second.out);
      });
    } else if constexpr (kPhases == 1) {
      if (left >= kLanes) return each_row([&](auto j, float* at) HWY_ATTR { hn::StoreU(sums[0][j], d, at); });
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      each_row([&](auto j, float* at) HWY_ATTR { hn::BlendedStore(sums[0][j], mask, d, at); });
    } else {
      const hn::RebindToSigned<D> di;
      const auto half = hn::ShiftRight<1>(hn::Iota(di, 0));
      const auto low = hn::IndicesFromVec(d, half);
      const auto high = hn::IndicesFromVec(d, hn::Add(half, hn::Set(di, kLanes / 2)));
      const auto low_mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, kLanes)));
      const auto high_mask =
          hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(left - kLanes, 0, kLanes)));
      each_row([&](auto j, float* at) HWY_ATTR {
        const V even = sums[0][j], odd = sums[1][j];
        hn::BlendedStore(hn::OddEven(hn::TableLookupLanes(odd, low), hn::TableLookupLanes(even, low)),
                         low_mask, d, at);
        if (left > kLanes)
          hn::BlendedStore(hn::OddEven(hn::TableLookupLanes(odd, high), hn::TableLookupLanes(even, high)),
                           high_mask, d, at + kLanes);
      });
    }
  }
};

// Rows that stay in registers beside their weights and a vector of the source.
constexpr int rows_of(int rows, int tap_rows, int phases) {
  return kFewRegisters ? HWY_MIN(rows, (15 - tap_rows) / phases) : rows;
}

template <int kLanes, int kTapRows, int kPhases>
void tiles(const DepthwiseWide& r) {
  // Planes of real networks are 7, 14, 28 … high.
  constexpr int kSeven = rows_of(7, kTapRows, kPhases), kEight = rows_of(8, kTapRows, kPhases);
  constexpr bool kPair = kPhases == 1 && kTapRows <= 3 && kLanes == 8 && hn::MaxLanes(Tag<16>()) == 16;
  using Pairs = WideTile<kLanes, kTapRows, kPhases, kSeven, true, kPair>;
  if constexpr (kPair)
    if (r.width <= 8 && r.rows == 7 && Pairs::is_regular(r)) return Pairs::planes(r);
  using Sevens = WideTile<kLanes, kTapRows, kPhases, kSeven, true>;
  if constexpr (kSeven == 7)
    if (Sevens::is_regular(r)) return Sevens::planes(r);
  WideTile<kLanes, kTapRows, kPhases, kEight, false>::planes(r);
}

template <int kLanes>
void wide(const DepthwiseWide& r) {
  using Planes = void (*)(const DepthwiseWide&);
  static constexpr Planes kOne[] = {tiles<kLanes, 1, 1>, tiles<kLanes, 2, 1>, tiles<kLanes, 3, 1>,
                                    tiles<kLanes, 4, 1>, tiles<kLanes, 5, 1>, tiles<kLanes, 6, 1>,
                                    tiles<kLanes, 7, 1>};
  static constexpr Planes kTwo[] = {tiles<kLanes, 1, 2>, tiles<kLanes, 2, 2>, tiles<kLanes, 3, 2>,
                                    tiles<kLanes, 4, 2>};
  static_assert(std::size(kOne) == kMostWideTapRows && std::size(kTwo) == kMostWideTapRowsOfTwo);
  (r.phases == 1 ? kOne : kTwo)[r.tap_rows - 1](r);
}

void depthwise_wide(const DepthwiseWide& r) {
  if (r.lanes == 16) {
    wide<HWY_MIN(16, hn::MaxLanes(Tag<16>()))>(r);
  } else {
    wide<8>(r);
  }
}

#else
int64_t wide_lanes(int64_t) { return 0; }
void depthwise_wide(const DepthwiseWide&) {}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(wide_lanes);
HWY_EXPORT(depthwise_wide);

struct Chosen {
  int64_t (*lanes)(int64_t);
  void (*planes)(const DepthwiseWide&);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(wide_lanes), RG_CHOSEN(depthwise_wide)};
  return instance;
}

}  // namespace

int64_t depthwise_wide_lanes(int64_t width) { return chosen().lanes(width); }
void depthwise_wide(const DepthwiseWide& planes) { chosen().planes(planes); }

}  // namespace retrograd::kernels::cpu
#endif
