// SPDX-License-Identifier: Apache-2.0
// Sums and quotients of pool_windows.h, once for every instruction set.
#include "kernels/cpu/pooling/pool_windows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling/pool_windows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> load_floats(D d, const float* at) {
  return load_codes(d, reinterpret_cast<const std::byte*>(at));
}
template <class D>
HWY_INLINE void store_floats(hn::Vec<D> v, D d, float* at) {
  store_codes(v, d, reinterpret_cast<std::byte*>(at));
}

template <class E>
HWY_INLINE void sum_line(const E& elements, const PoolRowSums& r, const std::byte* HWY_RESTRICT source,
                         float* HWY_RESTRICT sums) {
  const auto each_row = [&](const auto& add) HWY_ATTR {
    for (int64_t d = 0; d < r.depths; ++d)
      for (int64_t h = 0; h < r.rows; ++h) add(source + (d * r.depth_stride + h * r.row_stride) * E::kBytes);
  };
  const auto start = [&](auto d, int64_t i)
                         HWY_ATTR { return r.accumulate ? load_floats(d, sums + i) : hn::Zero(d); };
  // Vectors may not overlap where sums go on from what is there.
  int64_t done = 0;
  const Floats<kLanes> d;
  for (; done + 4 * kLanes <= r.count; done += 4 * kLanes) {
    auto s0 = start(d, done), s1 = start(d, done + kLanes), s2 = start(d, done + 2 * kLanes),
         s3 = start(d, done + 3 * kLanes);
    each_row([&](const std::byte* row) HWY_ATTR {
      const std::byte* at = row + done * E::kBytes;
      s0 = hn::Add(s0, elements.load(d, at));
      s1 = hn::Add(s1, elements.load(d, at + kLanes * E::kBytes));
      s2 = hn::Add(s2, elements.load(d, at + 2 * kLanes * E::kBytes));
      s3 = hn::Add(s3, elements.load(d, at + 3 * kLanes * E::kBytes));
    });
    store_floats(s0, d, sums + done);
    store_floats(s1, d, sums + done + kLanes);
    store_floats(s2, d, sums + done + 2 * kLanes);
    store_floats(s3, d, sums + done + 3 * kLanes);
  }
  const auto rest = [&](auto tag) HWY_ATTR {
    constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(decltype(tag)()));
    for (; done + kStep <= r.count; done += kStep) {
      auto sum = start(tag, done);
      each_row([&](const std::byte* row)
                   HWY_ATTR { sum = hn::Add(sum, elements.load(tag, row + done * E::kBytes)); });
      store_floats(sum, tag, sums + done);
    }
  };
  rest(Floats<kLanes>());
  if constexpr (kLanes > 8) rest(Floats<8>());
  if constexpr (kLanes > 4) rest(Floats<4>());
  rest(Floats<1>());
}

void sum_pool_rows(const PoolRowSums& r) {
  with_elements(r.type, [&](auto elements) HWY_ATTR {
    for (int64_t line = 0; line < r.lines; ++line)
      sum_line(elements, r, r.source + line * r.source_line * elements.kBytes, r.sums + line * r.sums_line);
  });
}

// Every other float of 2·lanes from `at` on.
template <class D>
HWY_INLINE hn::Vec<D> every_other(D d, const float* at) {
#if HWY_TARGET != HWY_SCALAR  // which has no such function
  if constexpr (hn::MaxLanes(D()) > 1)
    return hn::ConcatEven(d, hn::LoadU(d, at + hn::MaxLanes(D())), hn::LoadU(d, at));
#endif
  return load_floats(d, at);
}

template <class E>
HWY_INLINE void divide_places(const E& elements, const PoolDivision& r, const float* HWY_RESTRICT sums,
                              std::byte* HWY_RESTRICT out) {
  const auto store = [&](auto d, int64_t o, auto sum) HWY_ATTR {
    const auto divisor = hn::Mul(load_floats(d, r.divisors + o), hn::Set(d, r.factor));
    elements.store(hn::Div(sum, divisor), d, out + o * E::kBytes);
  };
  if (r.stride == 1) {
    in_vectors(r.count, [&](auto d, int64_t o) HWY_ATTR {
      auto sum = load_floats(d, sums + o);
      for (int64_t t = 1; t < r.taps; ++t) sum = hn::Add(sum, load_floats(d, sums + o + t));
      store(d, o, sum);
    });
  } else if (r.stride == 2) {
    in_vectors(r.count, [&](auto d, int64_t o) HWY_ATTR {
      auto sum = every_other(d, sums + 2 * o);
      for (int64_t t = 1; t < r.taps; ++t) sum = hn::Add(sum, every_other(d, sums + 2 * o + t));
      store(d, o, sum);
    });
  } else {
    const Floats<1> d;
    for (int64_t o = 0; o < r.count; ++o) {
      const float* at = sums + o * r.stride;
      float sum = at[0];
      for (int64_t t = 1; t < r.taps; ++t) sum += at[t];
      store(d, o, hn::Set(d, sum));
    }
  }
}

template <class E>
HWY_INLINE void divide_units(const E& elements, const PoolDivision& r, const float* HWY_RESTRICT sums,
                             std::byte* HWY_RESTRICT out) {
  for (int64_t o = 0; o < r.count; ++o) {
    const float* at = sums + o * r.stride * r.unit;
    std::byte* to = out + o * r.out_place * E::kBytes;
    const float divisor = r.divisors[o] * r.factor;
    in_vectors(r.unit, [&](auto d, int64_t c) HWY_ATTR {
      auto sum = load_floats(d, at + c);
      for (int64_t t = 1; t < r.taps; ++t) sum = hn::Add(sum, load_floats(d, at + t * r.unit + c));
      elements.store(hn::Div(sum, hn::Set(d, divisor)), d, to + c * E::kBytes);
    });
  }
}

void divide_windows(const PoolDivision& r) {
  with_elements(r.type, [&](auto elements) HWY_ATTR {
    for (int64_t line = 0; line < r.lines; ++line) {
      const float* sums = r.sums + line * r.sums_line;
      std::byte* out = r.out + line * r.out_line * elements.kBytes;
      r.unit == 1 ? divide_places(elements, r, sums, out) : divide_units(elements, r, sums, out);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(sum_pool_rows);
HWY_EXPORT(divide_windows);

struct Chosen {
  void (*sum)(const PoolRowSums&);
  void (*divide)(const PoolDivision&);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(sum_pool_rows), RG_CHOSEN(divide_windows)};
  return instance;
}

}  // namespace

void sum_pool_rows(const PoolRowSums& rows) { chosen().sum(rows); }
void divide_windows(const PoolDivision& division) { chosen().divide(division); }

}  // namespace retrograd::kernels::cpu
#endif
