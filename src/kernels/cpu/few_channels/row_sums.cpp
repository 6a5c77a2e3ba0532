// SPDX-License-Identifier: Apache-2.0
// Sums along rows, once for every instruction set.
#include "kernels/cpu/few_channels/row_sums.h"

#include <algorithm>

#include "kernels/cpu/float_at.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/few_channels/row_sums.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLineFloats = 16;
constexpr int kMostResults = kShape.row_results();
constexpr int vectors_for(int results) { return kShape.row_vectors(results); }
static_assert(has_lanes(hn::MaxLanes(D()), kShape.row_overrun()));

template <int kResults, int kVectors>
HWY_INLINE void sums(const RowSums& r, int64_t x) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  V sum[kResults * kVectors];
  float* out = r.out + x;
  each(Indices<kResults * kVectors>(), [&](auto i) HWY_ATTR {
    constexpr int m = i() / kVectors, v = i() % kVectors;
    sum[i()] = r.accumulate         ? hn::LoadU(d, out + m * r.out_stride + v * n)
               : r.start != nullptr ? hn::Set(d, float_at(r.start + m * r.start_step))
                                    : hn::Zero(d);
  });
  const float* HWY_RESTRICT weights = r.weights;
  const float* HWY_RESTRICT source = r.source + x;
  const int64_t* HWY_RESTRICT offsets = r.offsets;
  const int64_t inner = r.inner, weight_step = r.weight_step;
  const bool fetch_next = r.fetch_next;
  for (int64_t o = r.outer; o > 0; --o) {
    if (fetch_next)
      for (int64_t ahead = 0; ahead < kVectors * n; ahead += kLineFloats)
        hwy::Prefetch(source + kVectors * n + ahead);
    for (int64_t j = 0; j < inner; ++j) {
      const float* at = source + offsets[j];
      // The fewer ones stay in registers, the more numerous pass by.
      if constexpr (kVectors <= kResults) {
        V s[kVectors];
        each(Indices<kVectors>(), [&](auto v) HWY_ATTR { s[v()] = hn::LoadU(d, at + v() * n); });
        each(Indices<kResults>(), [&](auto m) HWY_ATTR {
          const V w = hn::Set(d, float_at(weights + m()));
          each(Indices<kVectors>(), [&](auto v) HWY_ATTR {
            sum[m() * kVectors + v()] = hn::MulAdd(w, s[v()], sum[m() * kVectors + v()]);
          });
        });
      } else {
        V w[kResults];
        each(Indices<kResults>(), [&](auto m) HWY_ATTR { w[m()] = hn::Set(d, float_at(weights + m())); });
        each(Indices<kVectors>(), [&](auto v) HWY_ATTR {
          const V s = held(hn::LoadU(d, at + v() * n));
          each(Indices<kResults>(), [&](auto m) HWY_ATTR {
            sum[m() * kVectors + v()] = hn::MulAdd(w[m()], s, sum[m() * kVectors + v()]);
          });
        });
      }
      weights += weight_step;
    }
    source += r.outer_stride;
  }
  each(Indices<kResults * kVectors>(), [&](auto i) HWY_ATTR {
    constexpr int m = i() / kVectors, v = i() % kVectors;
    hn::StoreU(sum[i()], d, out + m * r.out_stride + v * n);
  });
}

// As many blocks of kVectors as there are vectors for, the rest with fewer of them.
template <int kResults, int kVectors>
HWY_NOINLINE void row(const RowSums& r, int64_t x) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(D()));
  for (; x + (kVectors - 1) * n < r.count; x += kVectors * n) sums<kResults, kVectors>(r, x);
  if constexpr (kVectors > 1)
    if (x < r.count) row<kResults, kVectors / 2>(r, x);
}

template <int... I>
HWY_INLINE void dispatch(const RowSums& r, std::integer_sequence<int, I...>) {
  using Row = void (*)(const RowSums&, int64_t);
  static constexpr Row kRows[] = {row<I + 1, vectors_for(I + 1)>...};
  kRows[r.results - 1](r, 0);
}

void row_sums(const RowSums& r) { dispatch(r, Indices<kMostResults>()); }

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, row_sums)

void row_sums(const RowSums& rows) { chosen_row_sums()(rows); }

}  // namespace retrograd::kernels::cpu
#endif
