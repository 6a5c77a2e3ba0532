// SPDX-License-Identifier: Apache-2.0
// Sums and dot products along rows, once for every instruction set.
#include "kernels/cpu/row_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_products.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <int kTerms>
HWY_INLINE void dots(const RowDots& r, int64_t t) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const float* HWY_RESTRICT s0 = r.source + r.offsets[t];
  const float* HWY_RESTRICT s1 = r.source + r.offsets[t + (kTerms > 1 ? 1 : 0)];
  const float* HWY_RESTRICT s2 = r.source + r.offsets[t + (kTerms > 2 ? 2 : 0)];
  const float* HWY_RESTRICT s3 = r.source + r.offsets[t + (kTerms > 3 ? 3 : 0)];
  V a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0;
  for (int64_t x = 0; x < r.count; x += 2 * n) {
    const V y0 = hn::LoadU(d, r.y + x), y1 = hn::LoadU(d, r.y + x + n);
    a0 = hn::MulAdd(y0, hn::LoadU(d, s0 + x), a0);
    a1 = hn::MulAdd(y1, hn::LoadU(d, s0 + x + n), a1);
    if constexpr (kTerms > 1) {
      b0 = hn::MulAdd(y0, hn::LoadU(d, s1 + x), b0);
      b1 = hn::MulAdd(y1, hn::LoadU(d, s1 + x + n), b1);
    }
    if constexpr (kTerms > 2) {
      c0 = hn::MulAdd(y0, hn::LoadU(d, s2 + x), c0);
      c1 = hn::MulAdd(y1, hn::LoadU(d, s2 + x + n), c1);
    }
    if constexpr (kTerms > 3) {
      e0 = hn::MulAdd(y0, hn::LoadU(d, s3 + x), e0);
      e1 = hn::MulAdd(y1, hn::LoadU(d, s3 + x + n), e1);
    }
  }
  r.sums[t] += hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1)));
  if constexpr (kTerms > 1) r.sums[t + 1] += hn::GetLane(hn::SumOfLanes(d, hn::Add(b0, b1)));
  if constexpr (kTerms > 2) r.sums[t + 2] += hn::GetLane(hn::SumOfLanes(d, hn::Add(c0, c1)));
  if constexpr (kTerms > 3) r.sums[t + 3] += hn::GetLane(hn::SumOfLanes(d, hn::Add(e0, e1)));
}

void row_dots(const RowDots& r) {
  int64_t t = 0;
  for (; t + 4 <= r.terms; t += 4) dots<4>(r, t);
  switch (r.terms - t) {
    case 3:
      return dots<3>(r, t);
    case 2:
      return dots<2>(r, t);
    case 1:
      return dots<1>(r, t);
    default:
      return;
  }
}

int64_t dots_overrun() { return 2 * static_cast<int64_t>(hn::Lanes(D())); }

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(row_dots);
HWY_EXPORT(dots_overrun);

struct Chosen {
  void (*dots)(const RowDots&);
  int64_t overrun;
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(row_dots), RG_CHOSEN(dots_overrun)()};
  return instance;
}

}  // namespace

void row_dots(const RowDots& rows) { chosen().dots(rows); }
int64_t dots_overrun() { return chosen().overrun; }

}  // namespace retrograd::kernels::cpu
#endif
