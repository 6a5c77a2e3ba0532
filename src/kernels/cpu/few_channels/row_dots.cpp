// SPDX-License-Identifier: Apache-2.0
// Dot products along rows, once for every instruction set.
#include "kernels/cpu/few_channels/row_dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/few_channels/row_dots.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/float_at.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kMostChannels = kShape.dot_channels();
constexpr int terms_for(int channels) { return kShape.dot_terms(channels); }
static_assert(has_lanes(hn::MaxLanes(D()), kShape.dot_lanes()));

// What a tile fetches of the next call: its share of the channels.
struct Fetched {
  const float* first = nullptr;
  int64_t channels = 0;
};

// One vector of each channel and term: the fewer stay in registers, the more numerous pass by.
template <int kChannels, int kTerms>
HWY_INLINE void step(const float* y, int64_t y_stride, const float* const* source, int64_t at, V* sum) {
  const D d;
  if constexpr (kTerms <= kChannels) {
    V s[kTerms];
    each(Indices<kTerms>(), [&](auto t) HWY_ATTR { s[t()] = held(hn::LoadU(d, source[t()] + at)); });
    each(Indices<kChannels>(), [&](auto o) HWY_ATTR {
      const V v = held(hn::LoadU(d, y + o() * y_stride));
      each(Indices<kTerms>(), [&](auto t) HWY_ATTR {
        sum[o() * kTerms + t()] = hn::MulAdd(v, s[t()], sum[o() * kTerms + t()]);
      });
    });
  } else {
    V v[kChannels];
    each(Indices<kChannels>(), [&](auto o) HWY_ATTR { v[o()] = held(hn::LoadU(d, y + o() * y_stride)); });
    each(Indices<kTerms>(), [&](auto t) HWY_ATTR {
      const V s = held(hn::LoadU(d, source[t()] + at));
      each(Indices<kChannels>(), [&](auto o) HWY_ATTR {
        sum[o() * kTerms + t()] = hn::MulAdd(v[o()], s, sum[o() * kTerms + t()]);
      });
    });
  }
}

template <int kChannels, int kTerms, bool kFetch>
HWY_NOINLINE void tile(const RowDots& r, int64_t term, const Fetched& fetched) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  V sum[kChannels * kTerms];
  float* sums = r.sums + term * n;
  each(Indices<kChannels * kTerms>(), [&](auto i) HWY_ATTR {
    constexpr int o = i() / kTerms, t = i() % kTerms;
    sum[i()] = r.accumulate ? hn::Load(d, sums + (o * r.terms + t) * n) : hn::Zero(d);
  });
  const float* source[kTerms];
  each(Indices<kTerms>(), [&](auto t) HWY_ATTR { source[t()] = r.source + r.offsets[term + t()]; });
  const int64_t whole = r.count / n * n, rest = r.count - whole;
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* y = r.y + row * r.y_row;
    const int64_t at = row * r.source_row;
    for (int64_t x = 0; x < whole; x += n) {
      if constexpr (kFetch) {
        const float* next = fetched.first + row * r.y_row + x;
        for (int64_t i = fetched.channels; i > 0; --i, next += r.y_stride) hwy::Prefetch(next);
      }
      step<kChannels, kTerms>(y + x, r.y_stride, source, at + x, sum);
    }
    if (rest == 0) continue;
    HWY_ALIGN float ends[kChannels * RG_VECTOR_BYTES / sizeof(float)] = {};
    for (int o = 0; o < kChannels; ++o)
      for (int64_t x = 0; x < rest; ++x) ends[o * n + x] = float_at(y + o * r.y_stride + whole + x);
    step<kChannels, kTerms>(ends, n, source, at + whole, sum);
  }
  each(Indices<kChannels * kTerms>(), [&](auto i) HWY_ATTR {
    constexpr int o = i() / kTerms, t = i() % kTerms;
    hn::Store(sum[i()], d, sums + (o * r.terms + t) * n);
  });
}

// Even shares of the terms: a tile of one term is a slow one.
template <int kChannels, bool kFetch, int... I>
void all_terms(const RowDots& r, std::integer_sequence<int, I...>) {
  using Tile = void (*)(const RowDots&, int64_t, const Fetched&);
  static constexpr Tile kTiles[] = {tile<kChannels, I + 1, kFetch>...};
  constexpr int64_t kMost = sizeof...(I);
  const int64_t tiles = (r.terms + kMost - 1) / kMost;
  for (int64_t i = 0, term = 0; i < tiles; ++i) {
    Fetched fetched;
    if constexpr (kFetch) {
      const int64_t first = i * kChannels / tiles;
      fetched = {r.y + r.next + first * r.y_stride, (i + 1) * kChannels / tiles - first};
    }
    const int64_t count = (r.terms - term + tiles - i - 1) / (tiles - i);
    kTiles[count - 1](r, term, fetched);
    term += count;
  }
}

template <int kChannels>
void with_channels(const RowDots& r) {
  using Terms = Indices<terms_for(kChannels)>;
  return r.next != 0 ? all_terms<kChannels, true>(r, Terms()) : all_terms<kChannels, false>(r, Terms());
}

template <int... I>
HWY_INLINE void dispatch(const RowDots& r, std::integer_sequence<int, I...>) {
  using All = void (*)(const RowDots&);
  static constexpr All kAll[] = {with_channels<I + 1>...};
  kAll[r.channels - 1](r);
}

void row_dots(const RowDots& r) { dispatch(r, Indices<kMostChannels>()); }

#if RG_HAS_LANES
// Neighbours are added, until each lane is the total of one of kVectors vectors: three instructions for two
// vectors, where each by itself takes eight.
template <int64_t kVectors>
HWY_INLINE V added(const float* sums) {
  const D d;
  if constexpr (kVectors == 1) {
    return hn::Load(d, sums);
  } else {
    const V low = added<kVectors / 2>(sums),
            high = added<kVectors / 2>(sums + kVectors / 2 * hn::MaxLanes(d));
    return hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}
#endif

void lane_totals(const float* sums, int64_t count, float* totals) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
#if RG_HAS_LANES
  constexpr int64_t kLanes = hn::MaxLanes(D());
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(added<kLanes>(sums + i * kLanes), d, totals + i);
#endif
  for (; i < count; ++i) totals[i] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + i * n)));
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, row_dots)
RG_EXPORT(RG_CHOSEN, lane_totals)

void row_dots(const RowDots& dots) { chosen_row_dots()(dots); }
void lane_totals(const float* sums, int64_t count, float* totals) {
  chosen_lane_totals()(sums, count, totals);
}

}  // namespace retrograd::kernels::cpu
#endif
