// SPDX-License-Identifier: Apache-2.0
// Copies of rows, once for every instruction set.
#include "kernels/cpu/layout/row_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layout/row_copy.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/layout/transpose.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::ScalableTag<float>;
template <int kLanes>
using Lanes = hn::CappedTag<float, kLanes>;
constexpr int kMostLanes = static_cast<int>(hn::MaxLanes(D()));

constexpr int64_t kLineFloats = 16;

// Where a masked store touches nothing beside the mask, and is quick.
constexpr bool kMasks = RG_HAS_AVX512;

// Callers' floats may lie at any address.
HWY_INLINE void copy_one(const float* from, float* to) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(float));
}
constexpr float kNothing = 0;

// Rows shorter than a vector.
void copy_short_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count) {
  const D d;
  if constexpr (kMasks) {
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    for (int64_t r = 0; r < rows; ++r)
      hn::BlendedStore(hn::MaskedLoad(inside, d, in + r * in_stride), inside, d, out + r * out_stride);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t x = 0; x < count; ++x) copy_one(in + r * in_stride + x, out + r * out_stride + x);
  }
}

HWY_INLINE void copy_each(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                          int64_t count) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  if (count < n) return copy_short_rows(in, in_stride, out, out_stride, rows, count);
  // The last vector ends with the row, so it overlaps the one before.
  const int64_t last = count - n;
  for (int64_t r = 0; r < rows; ++r, in += in_stride, out += out_stride) {
    for (int64_t x = 0; x < last; x += n) hn::StoreU(hn::LoadU(d, in + x), d, out + x);
    hn::StoreU(hn::LoadU(d, in + last), d, out + last);
  }
}

void copy_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t count) {
  copy_each(in, in_stride, out, out_stride, rows, count);
}

void copy_rows_apart(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count, int64_t ahead) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const int64_t end = (rows - 1) * out_stride + count;
  // Zeros that reach into the next row are written over by it.
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t x = 0; x < count; x += kLineFloats) hwy::Prefetch(in + r * in_stride + ahead + x);
    copy_each(in + r * in_stride, 0, out + r * out_stride, 0, 1, count);
    if (r + 1 == rows) return;
    const int64_t stop = (r + 1) * out_stride;
    int64_t x = r * out_stride + count;
    for (; x < stop && x + n <= end; x += n) hn::StoreU(hn::Zero(d), d, out + x);
    for (; x < stop; ++x) out[x] = 0;
  }
}

#if RG_HAS_LANES
// Calls body(lanes) for the longest vectors that `count` floats fill, or says that none do.
template <class Body>
HWY_INLINE bool in_whole_vectors(int64_t count, const Body& body) {
  const auto fill = [&](auto lanes) {
    if constexpr (lanes() <= kMostLanes) {
      if (count < lanes()) return false;
      body(lanes);
      return true;
    } else {
      return false;
    }
  };
  return fill(std::integral_constant<int, kMostLanes>()) || fill(std::integral_constant<int, 8>()) ||
         fill(std::integral_constant<int, 4>());
}

// Two ways: one permutation a way and vector, and a blend.
template <class D>
struct WeaveTwo {
  static constexpr int64_t kWays = 2;
  using Indices = decltype(hn::SetTableIndices(D(), static_cast<const int32_t*>(nullptr)));
  Indices lower, upper;  // 0 0 1 1 …, and the same from the middle on

  HWY_INLINE WeaveTwo() : lower(halves(0)), upper(halves(static_cast<int32_t>(hn::Lanes(D()) / 2))) {}
  static HWY_INLINE Indices halves(int32_t first) {
    HWY_ALIGN int32_t lanes[RG_VECTOR_BYTES / sizeof(float)];
    for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = first + static_cast<int32_t>(i / 2);
    return hn::SetTableIndices(D(), lanes);
  }
  HWY_INLINE void store(const float* in, int64_t way_stride, float* out) const {
    const D d;
    const auto even = hn::LoadU(d, in), odd = hn::LoadU(d, in + way_stride);
    hn::StoreU(hn::OddEven(hn::TableLookupLanes(odd, lower), hn::TableLookupLanes(even, lower)), d, out);
    hn::StoreU(hn::OddEven(hn::TableLookupLanes(odd, upper), hn::TableLookupLanes(even, upper)), d,
               out + hn::Lanes(d));
  }
};
template <class D>
struct WeaveThree {
  static constexpr int64_t kWays = 3;
  HWY_INLINE void store(const float* in, int64_t way_stride, float* out) const {
    const D d;
    hn::StoreInterleaved3(hn::LoadU(d, in), hn::LoadU(d, in + way_stride), hn::LoadU(d, in + 2 * way_stride),
                          d, out);
  }
};
template <class D>
struct WeaveFour {
  static constexpr int64_t kWays = 4;
  HWY_INLINE void store(const float* in, int64_t way_stride, float* out) const {
    const D d;
    hn::StoreInterleaved4(hn::LoadU(d, in), hn::LoadU(d, in + way_stride), hn::LoadU(d, in + 2 * way_stride),
                          hn::LoadU(d, in + 3 * way_stride), d, out);
  }
};

// Positions first to stop of every way, at least a vector of them.
template <template <class> class Weave, int kLanes>
HWY_NOINLINE void weave_vectors(const WovenRows& w, int64_t first, int64_t stop) {
  using OfLanes = Weave<Lanes<kLanes>>;
  const OfLanes weave;
  const int64_t last = stop - kLanes, way_stride = w.way_stride;
  const int64_t in_stride = w.in_stride, out_stride = w.out_stride;
  const float* HWY_RESTRICT in = w.in;
  float* HWY_RESTRICT out = w.out;
  for (int64_t r = w.rows; r > 0; --r, in += in_stride, out += out_stride) {
    for (int64_t j = first; j < last; j += kLanes) weave.store(in + j, way_stride, out + j * OfLanes::kWays);
    weave.store(in + last, way_stride, out + last * OfLanes::kWays);  // overlaps the one before
  }
}

bool weave_in_vectors(const WovenRows& w, int64_t first, int64_t stop) {
  return w.ways <= 4 && in_whole_vectors(stop - first, [&](auto lanes) {
           if (w.ways == 2) weave_vectors<WeaveTwo, lanes()>(w, first, stop);
           if (w.ways == 3) weave_vectors<WeaveThree, lanes()>(w, first, stop);
           if (w.ways == 4) weave_vectors<WeaveFour, lanes()>(w, first, stop);
         });
}
#else
bool weave_in_vectors(const WovenRows&, int64_t, int64_t) { return false; }
#endif

// One place of every row.
void weave_place(const WovenRows& w, int64_t place) {
  const float* in = w.in + place % w.ways * w.way_stride + place / w.ways;
  for (int64_t r = 0; r < w.rows; ++r) copy_one(in + r * w.in_stride, w.out + r * w.out_stride + place);
}

void weave_rows(const WovenRows& w) {
  if (w.ways == 1)
    return copy_each(w.in + w.begin, w.in_stride, w.out + w.begin, w.out_stride, w.rows, w.end - w.begin);
  // Positions of which every way is stored; at each end there may be one of which some are.
  const int64_t stop = w.end / w.ways, first = std::min((w.begin + w.ways - 1) / w.ways, stop);
  for (int64_t place = w.begin; place < std::min(first * w.ways, w.end); ++place) weave_place(w, place);
  for (int64_t place = std::max(stop * w.ways, w.begin); place < w.end; ++place) weave_place(w, place);
  if (weave_in_vectors(w, first, stop)) return;
  // Many ways are columns that become rows.
  constexpr int64_t kFewestTurned = 4;
  if (std::min(w.ways, stop - first) >= kFewestTurned) {
    for (int64_t r = 0; r < w.rows; ++r)
      cpu::transpose(w.in + r * w.in_stride + first, w.way_stride, w.out + r * w.out_stride + first * w.ways,
                     w.ways, w.ways, stop - first);
    return;
  }
  for (int64_t i = 0; i < w.ways; ++i)
    for (int64_t j = first; j < stop; ++j)
      for (int64_t r = 0; r < w.rows; ++r)
        copy_one(w.in + i * w.way_stride + r * w.in_stride + j, w.out + r * w.out_stride + j * w.ways + i);
}

#if RG_HAS_LANES
template <class D>
struct PartTwo {
  static constexpr int64_t kWays = 2;
  HWY_INLINE void store(const float* in, int64_t way_stride, float* out) const {
    const D d;
    const auto low = hn::LoadU(d, in), high = hn::LoadU(d, in + hn::Lanes(d));
    hn::StoreU(hn::ConcatEven(d, high, low), d, out);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, out + way_stride);
  }
};
template <class D>
struct PartFour {
  static constexpr int64_t kWays = 4;
  HWY_INLINE void store(const float* in, int64_t way_stride, float* out) const {
    const D d;
    const size_t n = hn::Lanes(d);
    const auto a = hn::LoadU(d, in), b = hn::LoadU(d, in + n), c = hn::LoadU(d, in + 2 * n),
               e = hn::LoadU(d, in + 3 * n);
    const auto low_even = hn::ConcatEven(d, b, a), low_odd = hn::ConcatOdd(d, b, a),
               high_even = hn::ConcatEven(d, e, c), high_odd = hn::ConcatOdd(d, e, c);
    hn::StoreU(hn::ConcatEven(d, high_even, low_even), d, out);
    hn::StoreU(hn::ConcatEven(d, high_odd, low_odd), d, out + way_stride);
    hn::StoreU(hn::ConcatOdd(d, high_even, low_even), d, out + 2 * way_stride);
    hn::StoreU(hn::ConcatOdd(d, high_odd, low_odd), d, out + 3 * way_stride);
  }
};

// All ways at once: what is read is wanted whole. Positions as in weave_vectors.
template <template <class> class Part, int kLanes>
HWY_NOINLINE void part_vectors(const PartedRows& p, int64_t first, int64_t stop) {
  using OfLanes = Part<Lanes<kLanes>>;
  const OfLanes part;
  constexpr int64_t kWays = OfLanes::kWays;
  const int64_t last = stop - kLanes, way_stride = p.way_stride;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* in = p.in + r * p.in_stride;
    float* out = p.out + r * p.out_stride;
    for (int64_t x = kWays * first; x < kWays * stop; x += kLineFloats) hwy::Prefetch(in + p.ahead + x);
    for (int64_t j = first; j < last; j += kLanes) part.store(in + kWays * j, way_stride, out + j);
    part.store(in + kWays * last, way_stride, out + last);
  }
}

bool part_in_vectors(const PartedRows& p, int64_t first, int64_t stop) {
  return (p.ways == 2 || p.ways == 4) && in_whole_vectors(stop - first, [&](auto lanes) {
           p.ways == 2 ? part_vectors<PartTwo, lanes()>(p, first, stop)
                       : part_vectors<PartFour, lanes()>(p, first, stop);
         });
}
#else
bool part_in_vectors(const PartedRows&, int64_t, int64_t) { return false; }
#endif

// One place of every row: a division for each place of each row took longer than the vectors of the row.
void part_place(const PartedRows& p, int64_t place) {
  const bool inside = place >= p.begin && place < p.end;
  float* out = p.out + place % p.ways * p.way_stride + place / p.ways;
  for (int64_t r = 0; r < p.rows; ++r)
    copy_one(inside ? p.in + r * p.in_stride + place : &kNothing, out + r * p.out_stride);
}

void part_rows(const PartedRows& p) {
  const int64_t ways = p.ways, stop = p.end / ways, first = std::min((p.begin + ways - 1) / ways, stop);
  for (int64_t place = 0; place < first * ways; ++place) part_place(p, place);
  for (int64_t place = stop * ways; place < p.count * ways; ++place) part_place(p, place);
  if (part_in_vectors(p, first, stop)) return;
  for (int64_t i = 0; i < ways; ++i)
    for (int64_t j = first; j < stop; ++j)
      for (int64_t r = 0; r < p.rows; ++r)
        copy_one(p.in + r * p.in_stride + j * ways + i, p.out + i * p.way_stride + r * p.out_stride + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, copy_rows)
RG_EXPORT(RG_WIDEST, copy_rows_apart)
RG_EXPORT(RG_WIDEST, weave_rows)
RG_EXPORT(RG_WIDEST, part_rows)

void copy_rows(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
               int64_t count) {
  chosen_copy_rows()(in, in_stride, out, out_stride, rows, count);
}
void copy_rows_apart(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t rows,
                     int64_t count, int64_t ahead) {
  chosen_copy_rows_apart()(in, in_stride, out, out_stride, rows, count, ahead);
}
void weave_rows(const WovenRows& rows) { chosen_weave_rows()(rows); }
void part_rows(const PartedRows& rows) { chosen_part_rows()(rows); }

}  // namespace retrograd::kernels::cpu
#endif
