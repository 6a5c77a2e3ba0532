// SPDX-License-Identifier: Apache-2.0
// Products with few places, once for every instruction set. Sums over rows, or over places, are added in
// their order, whatever the vectors; those over columns a lane at a time.
#include "kernels/cpu/dense/few_places.h"

#include "kernels/cpu/float_at.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/few_places.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;

constexpr int64_t kRowsAtOnce = 4;

// Calls body(tag, c) for vectors that cover [0, columns), each place once.
template <class Body>
HWY_INLINE void each_vector(int64_t columns, const Body& body) {
  int64_t c = 0;
  const auto cover = [&](auto d) HWY_ATTR {
    constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(decltype(d)()));
    for (; c + kStep <= columns; c += kStep) body(d, c);
  };
  cover(Floats<kLanes>());
  if constexpr (kLanes > 8) cover(Floats<8>());
  if constexpr (kLanes > 4) cover(Floats<4>());
  cover(Floats<1>());
}

// Four rows, or one, at one or two places; the rows that come next are fetched with the first place.
template <int kRows, int kPlaces, class E>
HWY_INLINE void add_rows(const E& elements, const FewPlaces& f, int64_t row, int64_t place) {
  const int64_t step = f.weight_stride * E::kBytes;
  const std::byte* HWY_RESTRICT w = f.weights + row * step;
  const float* factors = f.factors + place * f.factor_stride + row;
  const auto factor = [&](int64_t p, int64_t r) {
    return p < kPlaces && r < kRows ? factors[p * f.factor_stride + r] : 0;
  };
  const float a0 = factor(0, 0), a1 = factor(0, 1), a2 = factor(0, 2), a3 = factor(0, 3);
  const float b0 = factor(1, 0), b1 = factor(1, 1), b2 = factor(1, 2), b3 = factor(1, 3);
  float* HWY_RESTRICT upper = f.values + place * f.value_stride;
  float* HWY_RESTRICT lower = upper + (kPlaces > 1 ? f.value_stride : 0);
  const bool fetches = place == 0 && row + 2 * kRows <= f.rows;
  each_vector(f.columns, [&](auto d, int64_t c) HWY_ATTR {
    const std::byte* at = w + c * E::kBytes;
    auto u = hn::LoadU(d, upper + c);
    [[maybe_unused]] auto l = kPlaces > 1 ? hn::LoadU(d, lower + c) : u;
    const auto add = [&](int64_t r, float a, float b) HWY_ATTR {
      const auto v = elements.load(d, at + r * step);
      if (fetches) hwy::Prefetch(at + (r + kRows) * step);
      u = hn::MulAdd(hn::Set(d, a), v, u);
      if constexpr (kPlaces > 1) l = hn::MulAdd(hn::Set(d, b), v, l);
    };
    add(0, a0, b0);
    if constexpr (kRows > 1) {
      add(1, a1, b1);
      add(2, a2, b2);
      add(3, a3, b3);
    }
    hn::StoreU(u, d, upper + c);
    if constexpr (kPlaces > 1) hn::StoreU(l, d, lower + c);
  });
}

template <int kRows, class E>
HWY_INLINE void add_at_all_places(const E& elements, const FewPlaces& f, int64_t row) {
  int64_t p = 0;
  for (; p + 2 <= f.places; p += 2) add_rows<kRows, 2>(elements, f, row, p);
  if (p < f.places) add_rows<kRows, 1>(elements, f, row, p);
}

void add_weight_rows(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    int64_t r = 0;
    for (; r + kRowsAtOnce <= f.rows; r += kRowsAtOnce) add_at_all_places<kRowsAtOnce>(elements, f, r);
    for (; r < f.rows; ++r) add_at_all_places<1>(elements, f, r);
  });
}

// Four rows, or one.
template <int kRows, class E>
HWY_INLINE void store_rows(const E& elements, const FewPlaces& f, int64_t row) {
  const int64_t step = f.weight_stride * E::kBytes;
  std::byte* HWY_RESTRICT w = f.weights + row * step;
  each_vector(f.columns, [&](auto d, int64_t c) HWY_ATTR {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const float* HWY_RESTRICT a = f.factors + row;
    const float* HWY_RESTRICT values = f.values + c;
    for (int64_t p = 0; p < f.places; ++p, a += f.factor_stride, values += f.value_stride) {
      const auto v = hn::LoadU(d, values);
      s0 = hn::MulAdd(hn::Set(d, a[0]), v, s0);
      if constexpr (kRows > 1) {
        s1 = hn::MulAdd(hn::Set(d, a[1]), v, s1);
        s2 = hn::MulAdd(hn::Set(d, a[2]), v, s2);
        s3 = hn::MulAdd(hn::Set(d, a[3]), v, s3);
      }
    }
    std::byte* out = w + c * E::kBytes;
    elements.store(s0, d, out);
    if constexpr (kRows > 1) {
      elements.store(s1, d, out + step);
      elements.store(s2, d, out + 2 * step);
      elements.store(s3, d, out + 3 * step);
    }
  });
}

void store_weight_rows(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    int64_t r = 0;
    for (; r + kRowsAtOnce <= f.rows; r += kRowsAtOnce) store_rows<kRowsAtOnce>(elements, f, r);
    for (; r < f.rows; ++r) store_rows<1>(elements, f, r);
  });
}

// Four rows, or one, at one or two places. What does not fill a vector is added number by number.
template <int kRows, int kPlaces, class E>
HWY_INLINE void add_dots(const E& elements, const FewPlaces& f, int64_t row, int64_t place) {
  const Floats<kLanes> d;
  const Floats<1> one;
  const int64_t step = f.weight_stride * E::kBytes;
  const std::byte* HWY_RESTRICT w = f.weights + row * step;
  const float* HWY_RESTRICT upper = f.values + place * f.value_stride;
  const float* HWY_RESTRICT lower = upper + (kPlaces > 1 ? f.value_stride : 0);
  const bool fetches = place == 0 && row + 2 * kRows <= f.rows;
  auto u0 = hn::Zero(d), u1 = u0, u2 = u0, u3 = u0, l0 = u0, l1 = u0, l2 = u0, l3 = u0;
  int64_t c = 0;
  for (; c + kLanes <= f.columns; c += kLanes) {
    const auto u = hn::LoadU(d, upper + c);
    [[maybe_unused]] const auto l = hn::LoadU(d, lower + c);
    const auto add = [&](int64_t r, auto& at_upper, auto& at_lower) HWY_ATTR {
      const std::byte* from = w + r * step + c * E::kBytes;
      const auto v = elements.load(d, from);
      if (fetches) hwy::Prefetch(from + kRows * step);
      at_upper = hn::MulAdd(v, u, at_upper);
      if constexpr (kPlaces > 1) at_lower = hn::MulAdd(v, l, at_lower);
    };
    add(0, u0, l0);
    if constexpr (kRows > 1) {
      add(1, u1, l1);
      add(2, u2, l2);
      add(3, u3, l3);
    }
  }
  const auto store = [&](int64_t p, int64_t r, const auto& lanes) HWY_ATTR {
    const float* HWY_RESTRICT values = p == 0 ? upper : lower;
    auto rest = hn::Zero(one);
    for (int64_t i = c; i < f.columns; ++i)
      rest = hn::MulAdd(elements.load(one, w + r * step + i * E::kBytes), hn::LoadU(one, values + i), rest);
    f.sums[(place + p) * f.sum_stride + row + r] += hn::GetLane(hn::SumOfLanes(d, lanes)) + hn::GetLane(rest);
  };
  store(0, 0, u0);
  if constexpr (kPlaces > 1) store(1, 0, l0);
  if constexpr (kRows > 1) {
    store(0, 1, u1);
    store(0, 2, u2);
    store(0, 3, u3);
    if constexpr (kPlaces > 1) {
      store(1, 1, l1);
      store(1, 2, l2);
      store(1, 3, l3);
    }
  }
}

template <int kRows, class E>
HWY_INLINE void add_dots_at_all_places(const E& elements, const FewPlaces& f, int64_t row) {
  int64_t p = 0;
  for (; p + 2 <= f.places; p += 2) add_dots<kRows, 2>(elements, f, row, p);
  if (p < f.places) add_dots<kRows, 1>(elements, f, row, p);
}

void add_weight_dots(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    int64_t r = 0;
    for (; r + kRowsAtOnce <= f.rows; r += kRowsAtOnce) add_dots_at_all_places<kRowsAtOnce>(elements, f, r);
    for (; r < f.rows; ++r) add_dots_at_all_places<1>(elements, f, r);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, add_weight_rows)
RG_EXPORT(RG_WIDEST, store_weight_rows)
RG_EXPORT(RG_CHOSEN, add_weight_dots)

void add_weight_rows(const FewPlaces& f) { chosen_add_weight_rows()(f); }
void store_weight_rows(const FewPlaces& f) { chosen_store_weight_rows()(f); }
void add_weight_dots(const FewPlaces& f) { chosen_add_weight_dots()(f); }

}  // namespace retrograd::kernels::cpu
#endif
