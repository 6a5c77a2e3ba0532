// SPDX-License-Identifier: Apache-2.0
// Spaced rows, once for every instruction set. Steps of 2 are what strided 1 × 1 convolutions have; others
// are put down one by one.
#include "kernels/cpu/layout/row_space.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layout/row_space.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::ScalableTag<float>;

// Where a masked store touches nothing beside the mask, and is quick.
constexpr bool kMasks = RG_HAS_AVX512;

// Callers' floats may lie at any address.
HWY_INLINE void put(float value, float* out) {
  std::memcpy(static_cast<void*>(out), static_cast<const void*>(&value), sizeof(float));
}

HWY_INLINE void clear(float* out, int64_t count) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  for (; x + n <= count; x += n) hn::StoreU(hn::Zero(d), d, out + x);
  if constexpr (kMasks) {
    if (x < count) hn::BlendedStore(hn::Zero(d), hn::FirstN(d, static_cast<size_t>(count - x)), d, out + x);
  } else {
    for (; x < count; ++x) put(0, out + x);
  }
}

#if RG_HAS_LANES
// A vector of values becomes two of them with a zero behind each.
class Pairs {
  using Indices = decltype(hn::SetTableIndices(D(), static_cast<const int32_t*>(nullptr)));

 public:
  HWY_INLINE Pairs() : lower_(halves(0)), upper_(halves(static_cast<int32_t>(hn::Lanes(D()) / 2))) {}
  HWY_INLINE hn::Vec<D> lower(hn::Vec<D> v) const {
    return hn::OddEven(hn::Zero(D()), hn::TableLookupLanes(v, lower_));
  }
  HWY_INLINE hn::Vec<D> upper(hn::Vec<D> v) const {
    return hn::OddEven(hn::Zero(D()), hn::TableLookupLanes(v, upper_));
  }

 private:
  static HWY_INLINE Indices halves(int32_t first) {
    HWY_ALIGN int32_t lanes[RG_VECTOR_BYTES / sizeof(float)];
    for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = first + static_cast<int32_t>(i / 2);
    return hn::SetTableIndices(D(), lanes);
  }
  Indices lower_, upper_;
};

// Values [0, count) and the zeros behind them, 2·count ≤ room; what was written, in floats.
HWY_INLINE int64_t space_pairs(const Pairs& pairs, const float* in, float* out, int64_t count, int64_t room) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + n <= count; i += n) {
    const auto v = hn::LoadU(d, in + i);
    hn::StoreU(pairs.lower(v), d, out + 2 * i);
    hn::StoreU(pairs.upper(v), d, out + 2 * i + n);
  }
  if (i == count) return 2 * i;
  if constexpr (kMasks) {
    // Zeros come in for values that there are not: as much of both vectors as there is room for.
    const auto v = hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count - i)), d, in + i);
    const int64_t left = std::min(2 * n, room - 2 * i);
    const auto first = hn::FirstN(d, static_cast<size_t>(std::min(n, left)));
    hn::BlendedStore(pairs.lower(v), first, d, out + 2 * i);
    if (left > n) {
      const auto second = hn::FirstN(d, static_cast<size_t>(left - n));
      hn::BlendedStore(pairs.upper(v), second, d, out + 2 * i + n);
    }
    return 2 * i + left;
  }
  for (; i < count; ++i) {
    const float pair[2] = {in[i], 0};
    std::memcpy(static_cast<void*>(out + 2 * i), static_cast<const void*>(pair), sizeof(pair));
  }
  return 2 * i;
}

void stream_by_two(const SpacedOutRows& s) {
  const D d;
  const Pairs pairs;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < s.rows; ++r) {
    const float* in = s.in + r * s.in_stride;
    float* out = s.out + r * s.out_stride;
    for (int64_t x = 0; x < s.length; x += 2 * n, in += n) {
      const int64_t left = s.count - x / 2;
      auto v = hn::Zero(d);
      if (left >= n)
        v = hn::LoadU(d, in);
      else if (left > 0)
        v = hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(left)), d, in);
      hn::Stream(pairs.lower(v), d, out + x);
      if (x + n < s.length) hn::Stream(pairs.upper(v), d, out + x + n);
    }
  }
}

void space_by_two(const SpacedOutRows& s) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(D()));
  if (kMasks && s.stream && s.length % n == 0 && s.out_stride % n == 0 &&
      reinterpret_cast<uintptr_t>(s.out) % (static_cast<uintptr_t>(n) * sizeof(float)) == 0)
    return stream_by_two(s);
  const Pairs pairs;
  const int64_t whole = std::min(s.count, s.length / 2);  // the last value may have no place behind it
  for (int64_t r = 0; r < s.rows; ++r) {
    const float* in = s.in + r * s.in_stride;
    float* out = s.out + r * s.out_stride;
    const int64_t done = whole < s.count ? space_pairs(pairs, in, out, whole, 2 * whole)
                                         : space_pairs(pairs, in, out, whole, s.length);
    clear(out + done, s.length - done);
    if (whole < s.count) put(in[whole], out + 2 * whole);
  }
}
#endif

void pick_every_other(const float* in, float* out, int64_t count) {
#if RG_HAS_LANES
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const auto pick = [&](int64_t i) HWY_ATTR {
    hn::StoreU(hn::ConcatEven(d, hn::LoadU(d, in + 2 * i + n), hn::LoadU(d, in + 2 * i)), d, out + i);
  };
  // A pair of vectors ends one place behind its last value: the last value of all is not taken this way.
  if (count > n) {
    for (int64_t i = 0; i < count - 1 - n; i += n) pick(i);
    pick(count - 1 - n);
    in += 2 * (count - 1);  // one float of a caller's, at any address
    std::memcpy(static_cast<void*>(out + count - 1), static_cast<const void*>(in), sizeof(float));
    return;
  }
  if (kMasks && count > 0) {
    const int64_t read = 2 * count - 1;
    const auto low = hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(std::min(read, n))), d, in);
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    if (read <= n) return hn::BlendedStore(hn::ConcatEven(d, low, low), inside, d, out);
    const auto high = hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(read - n)), d, in + n);
    return hn::BlendedStore(hn::ConcatEven(d, high, low), inside, d, out);
  }
#endif
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(static_cast<void*>(out + i), static_cast<const void*>(in + 2 * i), sizeof(float));
}

void space_rows(const SpacedOutRows& s) {
#if RG_HAS_LANES
  if (s.step == 2) return space_by_two(s);
#endif
  for (int64_t r = 0; r < s.rows; ++r) {
    float* out = s.out + r * s.out_stride;
    clear(out, s.length);
    for (int64_t i = 0; i < s.count; ++i) put(s.in[r * s.in_stride + i], out + i * s.step);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, space_rows)
RG_EXPORT(RG_WIDEST, pick_every_other)

void space_rows(const SpacedOutRows& rows) { chosen_space_rows()(rows); }
void pick_every_other(const float* in, float* out, int64_t count) {
  chosen_pick_every_other()(in, out, count);
}

}  // namespace retrograd::kernels::cpu
#endif
