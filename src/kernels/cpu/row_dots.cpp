// SPDX-License-Identifier: Apache-2.0
// Dot products along rows, once for every instruction set.
#include "kernels/cpu/row_dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dots.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kMostChannels = kFewRegisters ? 4 : 8;
constexpr int terms_for(int channels) { return std::min(8, kSums / channels); }

#if HWY_HAVE_SCALABLE
// Vectors without a size make no arrays: one sum at a time.
template <int kChannels, int kTerms>
HWY_INLINE void tile(const RowDots& r, int64_t term) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < kChannels * kTerms; ++i) {
    const int64_t o = i / kTerms, t = term + i % kTerms;
    float* sums = r.sums + (o * r.terms + t) * n;
    V sum = r.accumulate ? hn::Load(d, sums) : hn::Zero(d);
    for (int64_t row = 0; row < r.rows; ++row) {
      const float* y = r.y + o * r.y_stride + row * r.y_row;
      const float* source = r.source + r.offsets[t] + row * r.source_row;
      for (int64_t x = 0; x < r.count; x += n) {
        const auto inside = hn::FirstN(d, static_cast<size_t>(r.count - x));
        sum = hn::MulAdd(hn::MaskedLoad(inside, d, y + x), hn::LoadU(d, source + x), sum);
      }
    }
    hn::Store(sum, d, sums);
  }
}
#else
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

template <int kChannels, int kTerms>
HWY_INLINE void tile(const RowDots& r, int64_t term) {
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
    for (int64_t x = 0; x < whole; x += n) step<kChannels, kTerms>(y + x, r.y_stride, source, at + x, sum);
    if (rest == 0) continue;
    HWY_ALIGN float ends[kChannels * HWY_MAX_BYTES / sizeof(float)] = {};
    for (int o = 0; o < kChannels; ++o)
      for (int64_t x = 0; x < rest; ++x) ends[o * n + x] = y[o * r.y_stride + whole + x];
    step<kChannels, kTerms>(ends, n, source, at + whole, sum);
  }
  each(Indices<kChannels * kTerms>(), [&](auto i) HWY_ATTR {
    constexpr int o = i() / kTerms, t = i() % kTerms;
    hn::Store(sum[i()], d, sums + (o * r.terms + t) * n);
  });
}

#endif

// As many tiles of kTerms as are full, the rest with fewer terms.
template <int kChannels, int kTerms>
HWY_NOINLINE void all_terms(const RowDots& r, int64_t term) {
  for (; term + kTerms <= r.terms; term += kTerms) tile<kChannels, kTerms>(r, term);
  if constexpr (kTerms > 1)
    if (term < r.terms) all_terms<kChannels, kTerms / 2>(r, term);
}

template <int... I>
HWY_INLINE void dispatch(const RowDots& r, std::integer_sequence<int, I...>) {
  using All = void (*)(const RowDots&, int64_t);
  static constexpr All kAll[] = {all_terms<I + 1, terms_for(I + 1)>...};
  kAll[r.channels - 1](r, 0);
}

void row_dots(const RowDots& r) { dispatch(r, Indices<kMostChannels>()); }

void lane_totals(const float* sums, int64_t count, float* totals) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; ++i) totals[i] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + i * n)));
}

int dot_channels() { return kMostChannels; }
int64_t dot_lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(row_dots);
HWY_EXPORT(lane_totals);
HWY_EXPORT(dot_channels);
HWY_EXPORT(dot_lanes);

struct Chosen {
  void (*dots)(const RowDots&);
  void (*totals)(const float*, int64_t, float*);
  int channels;
  int64_t lanes;
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(row_dots), RG_CHOSEN(lane_totals), RG_CHOSEN(dot_channels)(),
                               RG_CHOSEN(dot_lanes)()};
  return instance;
}

}  // namespace

void row_dots(const RowDots& dots) { chosen().dots(dots); }
void lane_totals(const float* sums, int64_t count, float* totals) { chosen().totals(sums, count, totals); }
int dot_channels() { return chosen().channels; }
int64_t dot_lanes() { return chosen().lanes; }

}  // namespace retrograd::kernels::cpu
#endif
