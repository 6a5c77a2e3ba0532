// SPDX-License-Identifier: Apache-2.0
// Tiles of rows with vectors along W, for instruction sets with masked loads.
#include "kernels/cpu/depthwise/depthwise_wide.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_wide.cpp"
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

static_assert(has_lanes(hn::MaxLanes(Tag<16>()), kShape.wide_lanes(16)) && kShape.wide_lanes(8) == 8);

// kRows rows of results × one vector of each phase; kAllRegular: only tiles that are regular.
template <int kLanes, int kTapRows, int kPhases, int kRows, bool kAllRegular, bool kPair>
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
  // Columns [begin, end) of a group.
  static HWY_NOINLINE void columns(const DepthwiseWide& r, const TileGroup& g,
                                   const Place<D>* HWY_RESTRICT places, int64_t begin, int64_t end) {
    const int64_t taps = r.all_taps();
    for (int64_t plane = g.plane; plane < g.plane + g.planes; plane += kPair ? 2 : 1) {
      // A last plane alone is its own second.
      const bool has_second = plane + 1 < g.plane + g.planes;
      const Second second{has_second ? r.source_plane : 0, has_second ? r.weight_plane : 0,
                          has_second ? r.out_plane : 0};
      const float* weights = r.weights + plane * r.weight_plane;
      V start = hn::Zero(Whole());
      if (r.start != nullptr)
        start = both(hn::Set(D(), r.start[plane]),
                     [&]() RG_INLINED { return hn::Set(D(), r.start[plane + (has_second ? 1 : 0)]); });
      for (int64_t tile = 0, row = g.row; tile < g.tiles; ++tile, row += kRows) {
        const int64_t from = row + r.first_row;
        const float* source = r.source + plane * r.source_plane + from * r.source_row;
        float* out = r.out + plane * r.out_plane + row * r.out_row;
        if (end <= kLanes) {
          prefetch_ahead(source, kRows * r.source_row);
          prefetch_ahead(out, kRows * r.out_row);
          if (kPair) prefetch_ahead(source + r.source_plane, kRows * r.source_row);
          if (kPair) prefetch_ahead(out + r.out_plane, kRows * r.out_row);
        }
        const Place<D>* HWY_RESTRICT at = places;
        Rows rows{source, r.source_row, std::max<int64_t>(-from, 0),
                  std::min<int64_t>(r.source_rows - from, kSources)};
        for (int64_t column = begin; column < end; column += kLanes, at += taps) {
          rows.top = source + column;
          if (kAllRegular || Base::is_regular(rows, r.rows - row)) {
            run<true>(r, rows, second, at, weights, start, out, column, kRows);
          } else if constexpr (!kAllRegular) {
            run<false>(r, rows, second, at, weights, start, out, column, r.rows - row);
          }
        }
      }
    }
  }

 private:
  template <bool kRegular>
  static HWY_INLINE void run(const DepthwiseWide& r, Rows rows, const Second& second,
                             const Place<D>* HWY_RESTRICT places, const float* HWY_RESTRICT weights, V start,
                             float* out, int64_t column, int64_t stored) {
    Sums sums;
    each(Indices<kPhases * kRows>(), [&](auto i) RG_INLINED { sums[i / kRows][i % kRows] = start; });
    for (int64_t depth = 0; depth < r.depths; ++depth) {
      const float* HWY_RESTRICT w = weights;
      const int64_t* HWY_RESTRICT offset = r.offsets;
      const Place<D>* HWY_RESTRICT place = places;
      each(Indices<kPhases>(), [&](auto phase) RG_INLINED {
        for (const int64_t* end = offset + r.taps[phase]; offset < end; ++offset, ++place, w += kTapRows) {
          if (place->dead) continue;
          const float* HWY_RESTRICT at = rows.top + *offset;
          with_lanes(*place, [&](const auto& lanes)
                                 RG_INLINED { add<kRegular>(rows, second, at, w, sums[phase], lanes); });
        }
      });
      rows.top += r.source_depth;
      weights += r.weight_depth;
    }
    store<kRegular>(r, second, column, stored, sums, out);
  }

  template <bool kRegular, class Lanes>
  static HWY_INLINE void add(const Rows& rows, const Second& second, const float* HWY_RESTRICT at,
                             const float* HWY_RESTRICT weights, V (&sums)[kRows], const Lanes& lanes) {
    V w[kTapRows];
    each(Indices<kTapRows>(), [&](auto h) RG_INLINED {
      w[h] = held(both(lanes.only(hn::Set(D(), weights[h])),
                       [&]() RG_INLINED { return lanes.only(hn::Set(D(), weights[second.weights + h])); }));
    });
    const auto add_source = [&](auto i) RG_INLINED {
      const float* HWY_RESTRICT p = at + i * rows.pitch;
      const V v = held(both(lanes.load(p), [&]() RG_INLINED { return lanes.load(p + second.source); }));
      each(Indices<kTapRows>(), [&](auto h) RG_INLINED {
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
    const auto each_row = [&](const auto& body) RG_INLINED {
      each(Indices<kRows>(), [&](auto j) RG_INLINED {
        if (kRegular || j < rows) body(j, to + j * r.out_row);
      });
    };
    if constexpr (kPair) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, kLanes)));
      each_row([&](auto j, float* at) RG_INLINED {
        hn::BlendedStore(hn::LowerHalf(d, sums[0][j]), mask, d, at);
        // g++ would make one instruction of both, which faults at masked places, unlike a masked store.
        hn::BlendedStore(held(hn::UpperHalf(d, sums[0][j])), mask, d, at + second.out);
      });
    } else if constexpr (kPhases == 1) {
      if (left >= kLanes)
        return each_row([&](auto j, float* at) RG_INLINED { hn::StoreU(sums[0][j], d, at); });
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      each_row([&](auto j, float* at) RG_INLINED { hn::BlendedStore(sums[0][j], mask, d, at); });
    } else {
      const hn::RebindToSigned<D> di;
      const auto half = hn::ShiftRight<1>(hn::Iota(di, 0));
      const auto low = hn::IndicesFromVec(d, half);
      const auto high = hn::IndicesFromVec(d, hn::Add(half, hn::Set(di, kLanes / 2)));
      const auto low_mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, kLanes)));
      const auto high_mask =
          hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(left - kLanes, 0, kLanes)));
      each_row([&](auto j, float* at) RG_INLINED {
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
constexpr int most_rows(int tap_rows, int phases) {
  return kFewRegisters ? HWY_MIN(8, (15 - tap_rows) / phases) : 8;
}

// Who makes the tiles of a group.
template <int kLanes, int kTapRows, int kPhases, bool kPair, int... I>
typename Columns<DepthwiseWide, kLanes>::Tile tile_of(std::integer_sequence<int, I...>, const TileGroup& g) {
  constexpr int kMost = most_rows(kTapRows, kPhases), kLeast = least_rows(kTapRows, kMost);
  if constexpr (!RG_EIGHT_LANES) {
    static constexpr typename Columns<DepthwiseWide, kLanes>::Tile kTiles[] = {
        WideTile<kLanes, kTapRows, kPhases, kLeast + I, true, kPair>::columns...};
    if (g.regular) return kTiles[g.height - kLeast];
  }
  return WideTile<kLanes, kTapRows, kPhases, kMost, false, kPair>::columns;
}

template <int kLanes, int kTapRows, int kPhases>
void tiles(const DepthwiseWide& r) {
  constexpr int kMost = most_rows(kTapRows, kPhases), kLeast = least_rows(kTapRows, kMost);
  constexpr bool kPair = kPhases == 1 && kTapRows <= 3 && kLanes == 8 && hn::MaxLanes(Tag<16>()) == 16;
  const auto each_group = [&](int64_t step, bool together, const auto& run) {
    // The height of a tile changes no bits: eight_lanes.h, which nobody waits for but the compiler, has one.
    each_tile_group<kTapRows>(r.planes, step, together, r.rows, r.first_row, r.source_rows,
                              RG_EIGHT_LANES ? kMost + 1 : kLeast, kMost, run);
  };
  in_columns<DepthwiseWide, kLanes, kPair>(
      r, (r.width + kPhases - 1) / kPhases, each_group, [](const TileGroup& g, auto lanes) {
        return tile_of<lanes(), kTapRows, kPhases, kPair>(Indices<kMost - kLeast + 1>(), g);
      });
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
static_assert(kShape.wide_lanes(16) == 0);
void depthwise_wide(const DepthwiseWide&) {}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, depthwise_wide)

void depthwise_wide(const DepthwiseWide& planes) { chosen_depthwise_wide()(planes); }

}  // namespace retrograd::kernels::cpu
#endif
