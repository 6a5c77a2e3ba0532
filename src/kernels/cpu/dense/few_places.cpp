// SPDX-License-Identifier: Apache-2.0
// Products with few places, once for every instruction set. Sums over rows, or over places, are added in
// their order, whatever the vectors; those over columns a lane at a time.
#include "kernels/cpu/dense/few_places.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/few_places.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/unroll-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;

constexpr int64_t kRowsAtOnce = 4;
// What a row of the weights is decoded for at once.
constexpr int kPlacesAtOnce = kFewRegisters ? 2 : 4;

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

// The rows that come next are fetched with the first place.
template <int kRows>
HWY_INLINE bool fetches_rows(const FewPlaces& f, int64_t row, int64_t place) {
  return place == 0 && row + 2 * kRows <= f.rows;
}

template <int kRows, int kPlaces, class E>
HWY_INLINE void add_rows(const E& elements, const FewPlaces& f, int64_t row, int64_t place) {
  const int64_t step = f.weight_stride * E::kBytes;
  const std::byte* HWY_RESTRICT w = f.weights + row * step;
  float factors[kPlaces * kRows];
  each(Indices<kPlaces * kRows>(), [&](auto i) RG_INLINED {
    constexpr int p = i() / kRows, r = i() % kRows;
    factors[i()] = f.factors[(place + p) * f.factor_stride + row + r];
  });
  float* HWY_RESTRICT values = f.values + place * f.value_stride;
  const bool fetches = fetches_rows<kRows>(f, row, place);
  each_vector(f.columns, [&](auto d, int64_t c) RG_INLINED {
    const std::byte* at = w + c * E::kBytes;
    hn::Vec<decltype(d)> sum[kPlaces];
    each(Indices<kPlaces>(),
         [&](auto p) RG_INLINED { sum[p()] = hn::LoadU(d, values + p() * f.value_stride + c); });
    each(Indices<kRows>(), [&](auto r) RG_INLINED {
      const auto v = elements.load(d, at + r() * step);
      if (fetches) hwy::Prefetch(at + (r() + kRows) * step);
      each(Indices<kPlaces>(), [&](auto p) RG_INLINED {
        sum[p()] = hn::MulAdd(hn::Set(d, factors[p() * kRows + r()]), v, sum[p()]);
      });
    });
    each(Indices<kPlaces>(),
         [&](auto p) RG_INLINED { hn::StoreU(sum[p()], d, values + p() * f.value_stride + c); });
  });
}

// body(place, number of places) for all of them, the number as a constant.
template <int kPlaces, class Body>
HWY_INLINE void each_places(const FewPlaces& f, const Body& body, int64_t place = 0) {
  for (; place + kPlaces <= f.places; place += kPlaces) body(place, std::integral_constant<int, kPlaces>());
  if constexpr (kPlaces > 1) each_places<kPlaces / 2>(f, body, place);
}

// body(row, number of rows), likewise.
template <class Body>
HWY_INLINE void each_rows(const FewPlaces& f, const Body& body) {
  int64_t r = 0;
  for (; r + kRowsAtOnce <= f.rows; r += kRowsAtOnce) body(r, std::integral_constant<int, kRowsAtOnce>());
  for (; r < f.rows; ++r) body(r, std::integral_constant<int, 1>());
}

void add_weight_rows(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    each_rows(f, [&](int64_t row, auto rows) HWY_ATTR {
      each_places<kPlacesAtOnce>(f, [&](int64_t place, auto places)
                                        HWY_ATTR { add_rows<rows(), places()>(elements, f, row, place); });
    });
  });
}

template <int kRows, class E>
HWY_INLINE void store_rows(const E& elements, const FewPlaces& f, int64_t row) {
  const int64_t step = f.weight_stride * E::kBytes;
  std::byte* HWY_RESTRICT w = f.weights + row * step;
  each_vector(f.columns, [&](auto d, int64_t c) RG_INLINED {
    hn::Vec<decltype(d)> sum[kRows];
    each(Indices<kRows>(), [&](auto r) RG_INLINED { sum[r()] = hn::Zero(d); });
    const float* HWY_RESTRICT a = f.factors + row;
    const float* HWY_RESTRICT values = f.values + c;
    for (int64_t p = 0; p < f.places; ++p, a += f.factor_stride, values += f.value_stride) {
      const auto v = hn::LoadU(d, values);
      each(Indices<kRows>(),
           [&](auto r) RG_INLINED { sum[r()] = hn::MulAdd(hn::Set(d, a[r()]), v, sum[r()]); });
    }
    each(Indices<kRows>(),
         [&](auto r) RG_INLINED { elements.store(sum[r()], d, w + r() * step + c * E::kBytes); });
  });
}

void store_weight_rows(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    each_rows(f, [&](int64_t row, auto rows) HWY_ATTR { store_rows<rows()>(elements, f, row); });
  });
}

// What does not fill a vector is added number by number.
template <int kRows, int kPlaces, class E>
HWY_INLINE void add_dots(const E& elements, const FewPlaces& f, int64_t row, int64_t place) {
  const Floats<kLanes> d;
  const Floats<1> one;
  const int64_t step = f.weight_stride * E::kBytes;
  const std::byte* HWY_RESTRICT w = f.weights + row * step;
  const float* HWY_RESTRICT values = f.values + place * f.value_stride;
  const bool fetches = fetches_rows<kRows>(f, row, place);
  hn::Vec<Floats<kLanes>> sum[kRows * kPlaces];
  each(Indices<kRows * kPlaces>(), [&](auto i) RG_INLINED { sum[i()] = hn::Zero(d); });
  int64_t c = 0;
  for (; c + kLanes <= f.columns; c += kLanes) {
    hn::Vec<Floats<kLanes>> value[kPlaces];
    each(Indices<kPlaces>(),
         [&](auto p) RG_INLINED { value[p()] = hn::LoadU(d, values + p() * f.value_stride + c); });
    each(Indices<kRows>(), [&](auto r) RG_INLINED {
      const std::byte* from = w + r() * step + c * E::kBytes;
      const auto v = elements.load(d, from);
      if (fetches) hwy::Prefetch(from + kRows * step);
      each(Indices<kPlaces>(), [&](auto p) RG_INLINED {
        sum[p() * kRows + r()] = hn::MulAdd(v, value[p()], sum[p() * kRows + r()]);
      });
    });
  }
  each(Indices<kRows * kPlaces>(), [&](auto i) RG_INLINED {
    constexpr int p = i() / kRows, r = i() % kRows;
    auto rest = hn::Zero(one);
    for (int64_t k = c; k < f.columns; ++k)
      rest = hn::MulAdd(elements.load(one, w + r * step + k * E::kBytes),
                        hn::LoadU(one, values + p * f.value_stride + k), rest);
    f.sums[(place + p) * f.sum_stride + row + r] +=
        hn::GetLane(hn::SumOfLanes(d, sum[i()])) + hn::GetLane(rest);
  });
}

void add_weight_dots(const FewPlaces& f) {
  with_elements(f.dtype, [&](auto elements) HWY_ATTR {
    each_rows(f, [&](int64_t row, auto rows) HWY_ATTR {
      each_places<kPlacesAtOnce>(f, [&](int64_t place, auto places)
                                        HWY_ATTR { add_dots<rows(), places()>(elements, f, row, place); });
    });
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
