// SPDX-License-Identifier: Apache-2.0
// What tiles of rows with vectors along W share: depthwise_wide.cpp and depthwise_wide_dots.cpp. Included
// once for every instruction set, after Highway; empty where that has no masked loads.
#if defined(RETROGRAD_KERNELS_DEPTHWISE_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_DEPTHWISE_WIDE_INL_H_
#undef RETROGRAD_KERNELS_DEPTHWISE_WIDE_INL_H_
#else
#define RETROGRAD_KERNELS_DEPTHWISE_WIDE_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/depthwise/depthwise_wide.h"
#include "kernels/cpu/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

#if RG_HAS_MASKED_LOADS
namespace hn = RG_VECTORS;

template <int kLanes>
using Tag = hn::CappedTag<float, kLanes>;

// Which lanes of a vector a tap reads.
template <class D>
struct Place {
  hn::Mask<D> mask;
  bool dead, full;
};
constexpr int64_t kPlaces = kMostWideTaps;

// Lanes [first, last), of those there are.
template <class D>
HWY_INLINE Place<D> place_of(int64_t first, int64_t last) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  first = std::clamp<int64_t>(first, 0, lanes);
  last = std::clamp<int64_t>(last, 0, lanes);
  return {hn::AndNot(hn::FirstN(d, static_cast<size_t>(first)), hn::FirstN(d, static_cast<size_t>(last))),
          first >= last, first == 0 && last == lanes};
}

// How the lanes of a place are read: load(p), with zeros in the others, and only(v) leaves zeros there.
template <class D>
struct AllLanes {
  static constexpr bool kAll = true;
  HWY_INLINE hn::Vec<D> load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE hn::Vec<D> only(hn::Vec<D> v) const { return v; }
};
template <class D>
struct MaskedLanes {
  static constexpr bool kAll = false;
  hn::Mask<D> mask;
  HWY_INLINE hn::Vec<D> load(const float* p) const { return hn::MaskedLoad(mask, D(), p); }
  HWY_INLINE hn::Vec<D> only(hn::Vec<D> v) const { return hn::IfThenElseZero(mask, v); }
};

// body(lanes). AVX2's masked loads make a plane 8 % slower than plain ones, AVX-512's cost nothing: there one
// body does, which is half as much to compile.
template <class D, class Body>
HWY_INLINE void with_lanes(const Place<D>& place, const Body& body) {
  if constexpr (!RG_HAS_AVX512)
    if (place.full) return body(AllLanes<D>());
  body(MaskedLanes<D>{place.mask});
}

// Rows of the lowest tile that has code of its own: planes of real networks are 7, 14, 28 … high, and rows of
// taps other than these are rare.
constexpr int least_rows(int tap_rows, int most) {
  return HWY_MIN(tap_rows <= 3 || tap_rows == 5 ? 4 : 7, most);
}

// Tiles of the same height, one below the other, in some planes.
struct TileGroup {
  int64_t plane = 0, planes = 0;
  int64_t row = 0, tiles = 0;
  int height = 0;
  bool regular = false;  // all tiles are
};

// Calls run(group) for all planes: rows are cut into tiles as even as they can be, of at most `most` rows.
// Where those would be fewer than `least` the last one is lower, and not regular. `together`: planes that are
// cut into one group are one.
template <int kTapRows, class Run>
HWY_INLINE void each_tile_group(int64_t planes, int64_t step, bool together, int64_t rows, int64_t first_row,
                                int64_t source_rows, int least, int most, const Run& run) {
  const int64_t tiles = (rows + most - 1) / most, height = rows / tiles, higher = rows % tiles;
  const int64_t above = std::max<int64_t>(-first_row, 0),
                below = rows + kTapRows - 1 + first_row - source_rows;
  const bool regular =
      height >= least && (above == 0 || above == (kTapRows - 1) / 2) && (below <= 0 || below == kTapRows / 2);
  TileGroup all{.plane = 0, .planes = planes, .row = 0, .tiles = tiles, .height = most, .regular = false};
  if (regular && higher == 0) {
    all.height = static_cast<int>(height);
    all.regular = true;
  }
  if (together && (!regular || higher == 0)) return run(all);
  for (int64_t plane = 0; plane < planes; plane += step) {
    TileGroup group = all;
    group.plane = plane;
    group.planes = std::min(step, planes - plane);
    if (!regular || higher == 0) {
      run(group);
      continue;
    }
    group.regular = true;
    group.tiles = higher;
    group.height = static_cast<int>(height) + 1;
    run(group);
    group.row = higher * (height + 1);
    group.tiles = tiles - higher;
    group.height = static_cast<int>(height);
    run(group);
  }
}

// A tile of kRows rows × one vector, and the kRows + kTapRows - 1 rows of the source around it. With kPair
// the halves of a vector are rows of two neighbouring planes.
template <int kLanes, int kTapRows, int kRows, bool kPair>
struct WideRows {
  using D = Tag<kLanes>;
  using Whole = Tag<kPair ? 2 * kLanes : kLanes>;
  using V = hn::Vec<Whole>;
  static constexpr int kSources = kRows + kTapRows - 1;
  // Rows outside the source at the top and at the bottom of a plane that keeps its height.
  static constexpr int kAbove = (kTapRows - 1) / 2, kBelow = kTapRows / 2;

  struct Rows {
    const float* HWY_RESTRICT top;  // of the sources, at the vector
    int64_t pitch;
    int64_t begin, end;  // sources inside the plane
  };

  // Whether the tile begins and ends where its sources do, or one border beyond.
  static HWY_INLINE bool is_regular(const Rows& rows, int64_t rows_left) {
    return rows_left >= kRows && (rows.begin == 0 || rows.begin == kAbove) &&
           (rows.end == kSources || rows.end == kSources - kBelow);
  }

  // A vector, or a vector whose upper half is the other one.
  template <class Other>
  static HWY_INLINE V both(hn::Vec<D> first, const Other& other) {
    if constexpr (kPair) {
      return hn::Combine(Whole(), other(), first);
    } else {
      return first;
    }
  }

  // add(i) for every row of the source that lies inside.
  template <bool kRegular, class Add>
  static HWY_INLINE void each_source(const Rows& rows, const Add& add) {
    if constexpr (kRegular) {
      if (kAbove > 0 && rows.begin == 0) each(Indices<kAbove>(), add);
      each(Indices<kSources - kAbove - kBelow>(),
           [&](auto i) RG_INLINED { add(std::integral_constant<int, i + kAbove>()); });
      if (kBelow > 0 && rows.end == kSources)
        each(Indices<kBelow>(),
             [&](auto i) RG_INLINED { add(std::integral_constant<int, i + kSources - kBelow>()); });
    } else {
      each(Indices<kSources>(), [&](auto i) RG_INLINED {
        if (i >= rows.begin && i < rows.end) add(i);
      });
    }
  }
};

// Columns [begin, end) of planes in vectors of kLanes. R is a request: all_taps() it has, and
// columns_left() are left from a column on of what a tap reads.
template <class R, int kLanes>
class Columns {
 public:
  using D = Tag<kLanes>;
  using Tile = void (*)(const R&, const TileGroup&, const Place<D>*, int64_t, int64_t);

  Columns(const R& r, int64_t begin, int64_t end)
      : begin_(begin), end_(end), all_fit_((end - begin + kLanes - 1) / kLanes * r.all_taps() <= kPlaces) {
    if (all_fit_)
      for (int64_t column = begin, i = 0; column < end; column += kLanes, i += r.all_taps())
        list_places(r, column, places_ + i);
  }

  void run(Tile tile, const R& r, const TileGroup& g) {
    if (all_fit_) return tile(r, g, places_, begin_, end_);
    for (int64_t column = begin_; column < end_; column += kLanes) {
      list_places(r, column, places_);
      tile(r, g, places_, column, column + 1);
    }
  }

 private:
  static void list_places(const R& r, int64_t column, Place<D>* places) {
    for (int64_t t = 0; t < r.all_taps(); ++t)
      places[t] = place_of<D>(-column - r.offsets[t], r.columns_left(column, t));
  }

  int64_t begin_, end_;
  bool all_fit_;
  Place<D> places_[kPlaces];
};

// All positions of a row. each_group(step, together, body) calls body(group), and tile(group, lanes) says who
// makes the tiles of a group in vectors of so many lanes, of which kPair: two planes share one.
template <class R, int kLanes, bool kPair, class EachGroup, class Tile>
HWY_INLINE void in_columns(const R& r, int64_t positions, const EachGroup& each_group, const Tile& tile) {
  constexpr std::integral_constant<int, kLanes> kFull;
  if constexpr (kLanes == 16) {
    // What remains of a row costs half as much in half a vector.
    const int64_t rest = positions % kLanes, halves = rest <= kLanes / 2 ? rest : 0;
    if (halves > 0) {
      constexpr std::integral_constant<int, kLanes / 2> kHalf;
      Columns<R, kLanes> whole(r, 0, positions - halves);
      Columns<R, kLanes / 2> half(r, positions - halves, positions);
      return each_group(1, false, [&](const TileGroup& g) HWY_ATTR {
        whole.run(tile(g, kFull), r, g);
        half.run(tile(g, kHalf), r, g);
      });
    }
  }
  Columns<R, kLanes> whole(r, 0, positions);
  each_group(kPair ? 2 : 1, true, [&](const TileGroup& g) HWY_ATTR { whole.run(tile(g, kFull), r, g); });
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
