// SPDX-License-Identifier: Apache-2.0
// Rows of windows to rows of places: each place the sum of the windows along the row that hold it.
//
// Included once for every instruction set.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"
#include "kernels/cpu/pooling/row_pool.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_EXPAND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_EXPAND_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_EXPAND_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_EXPAND_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// From this many windows a place on, sums of groups of them are made first: 10 additions for 25.
inline constexpr int64_t kManyTerms = 8;
static_assert(kLanes <= kMostPoolLanes);

// Σ_{t < terms} in[−t·step]
template <class D>
HWY_INLINE hn::Vec<D> sum_back(D d, const float* in, int64_t step, int64_t terms) {
  auto sum = load(d, in);
  for (int64_t t = 1; t < terms; ++t) sum = hn::Add(sum, load(d, in - t * step));
  return sum;
}

// What a row of results is made of: a(i), the sum of the windows that hold every residue, i floats from
// window 0 on.
template <int kTerms>
class FewTerms {
 public:
  FewTerms(const PoolVolumes&, float*) {}
  HWY_INLINE void start(const float* quotients) { row_ = quotients; }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    return sum_back(d, row_ + i, 1, kTerms);
  }

 private:
  const float* row_ = nullptr;
};

// There may be none.
class SomeTerms {
 public:
  SomeTerms(const PoolVolumes& p, float*) : terms_(p.terms) {}
  HWY_INLINE void start(const float* quotients) { row_ = quotients; }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    return terms_ == 0 ? hn::Zero(d) : sum_back(d, row_ + i, 1, terms_);
  }

 private:
  const float* row_ = nullptr;
  int64_t terms_;
};

class ManyTerms {
 public:
  // `groups`: a row of scratch, laid out as the quotients are.
  ManyTerms(const PoolVolumes& p, float* groups)
      : groups_(groups),
        group_(static_cast<int64_t>(std::sqrt(static_cast<double>(p.terms)))),
        whole_(p.terms / group_),
        left_(p.terms % group_),
        first_(p.pad / p.stride - (whole_ - 1) * group_),
        last_((p.x - 1 + p.pad) / p.stride + 1) {}
  HWY_INLINE void start(const float* quotients) {
    row_ = quotients;
    const Floats<kLanes> d;
    for (int64_t i = first_; i < last_; i += kLanes) store(sum_back(d, row_ + i, 1, group_), d, groups_ + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> a(D d, int64_t i) const {
    auto sum = sum_back(d, groups_ + i, group_, whole_);
    if (left_ > 0) sum = hn::Add(sum, sum_back(d, row_ + i - whole_ * group_, 1, left_));
    return sum;
  }

 private:
  const float* row_ = nullptr;
  float* groups_;
  int64_t group_, whole_, left_, first_, last_;
};

// Places side by side, by the table; whole vectors, so up to kLanes − 1 floats beyond a row are written.
template <bool kRest, class Sums>
void expand_by_phases(const PoolVolumes& p, Sums sums, const float* HWY_RESTRICT row, int64_t rows,
                      float* HWY_RESTRICT out) {
  const Floats<kLanes> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::RebindToUnsigned<decltype(d)> words;
  const int64_t places = p.x, stride = p.stride, terms = p.terms, pitch = p.pitch;
  const int64_t windows = kLanes / stride, residues = kLanes % stride;
  const int64_t first_window = p.pad / stride, first_residue = p.pad % stride;
  const PoolPhase* phases = p.phases;
  const auto lanes_of = [&](const PoolPhase& phase) HWY_ATTR {
    return hn::IndicesFromVec(d, hn::Load(integers, phase.window.data()));
  };
  const auto more_of = [&](const PoolPhase& phase)
                           HWY_ATTR { return hn::BitCast(d, hn::Load(words, phase.more.data())); };
  const auto expand = [&](auto lanes, auto more, int64_t j) HWY_ATTR {
    const auto a = hn::TableLookupLanes(sums.a(d, j), lanes);
    if constexpr (!kRest) return a;
    return hn::Add(a, hn::And(hn::TableLookupLanes(load(d, row + j - terms), lanes), more));
  };
  if (residues == 0 || places <= kLanes) {
    const auto lanes = lanes_of(phases[first_residue]);
    const auto more = more_of(phases[first_residue]);
    for (int64_t i = 0; i < rows; ++i, row += pitch, out += places) {
      sums.start(row);
      for (int64_t x = 0, j = first_window; x < places; x += kLanes, j += windows)
        store(expand(lanes, more, j), d, out + x);
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i, row += pitch, out += places) {
    sums.start(row);
    int64_t j = first_window, r = first_residue;
    for (int64_t x = 0; x < places; x += kLanes) {
      store(expand(lanes_of(phases[r]), more_of(phases[r]), j), d, out + x);
      const bool wraps = r + residues >= stride;
      j += windows + (wraps ? 1 : 0);
      r += residues - (wraps ? stride : 0);
    }
  }
}

// Places that lie in the same windows, run by run.
template <class Sums>
HWY_INLINE void expand_by_runs(const PoolVolumes& p, const Sums& sums, const float* HWY_RESTRICT row,
                               float* HWY_RESTRICT out) {
  int64_t j = p.pad / p.stride, r = p.pad % p.stride;
  for (int64_t x = 0; x < p.x;) {
    const int64_t run = std::min((r < p.rest ? p.rest : p.stride) - r, p.x - x);
    const float a = hn::GetLane(sums.a(Floats<1>(), j)), value = r < p.rest ? a + row[j - p.terms] : a;
    in_vectors(run, [&](auto d, int64_t i) { store(hn::Set(d, value), d, out + x + i); });
    x += run;
    r += run;
    if (r == p.stride) {
      r = 0;
      ++j;
    }
  }
}

template <class Sums>
void expand_rows(const PoolVolumes& p, const float* quotients, int64_t rows, float* groups, float* expanded) {
  Sums sums(p, groups);
  const int64_t line = p.x, pitch = p.pitch, shift = p.pad;
  if (p.stride > 1 && p.stride <= kMostPoolPhases) {
    return p.rest > 0 ? expand_by_phases<true>(p, sums, quotients, rows, expanded)
                      : expand_by_phases<false>(p, sums, quotients, rows, expanded);
  }
  const bool slides = p.stride == 1;
  for (int64_t i = 0; i < rows; ++i, quotients += pitch, expanded += line) {
    sums.start(quotients);
    if (slides) {
      in_vectors(line, [&](auto d, int64_t at) { store(sums.a(d, shift + at), d, expanded + at); });
    } else {
      expand_by_runs(p, sums, quotients, expanded);
    }
  }
}

void expand(const PoolVolumes& p, const float* quotients, int64_t rows, float* groups, float* expanded) {
  if (p.terms == 1) return expand_rows<FewTerms<1>>(p, quotients, rows, groups, expanded);
  if (p.terms == 2) return expand_rows<FewTerms<2>>(p, quotients, rows, groups, expanded);
  if (p.terms == 3) return expand_rows<FewTerms<3>>(p, quotients, rows, groups, expanded);
  if (p.terms < kManyTerms) return expand_rows<SomeTerms>(p, quotients, rows, groups, expanded);
  expand_rows<ManyTerms>(p, quotients, rows, groups, expanded);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
