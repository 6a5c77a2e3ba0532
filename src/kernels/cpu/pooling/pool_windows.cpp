// SPDX-License-Identifier: Apache-2.0
// Sums and quotients of pool_windows.h, once for every instruction set.
#include "kernels/cpu/pooling/pool_windows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling/pool_windows.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_divide-inl.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

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

constexpr int64_t kAhead = 2048;  // bytes, which reach from a row into the next one

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
      prefetch(at + kAhead, 4 * kLanes * E::kBytes);
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
  if constexpr (E::kBytes >= kMasksBytes) {
    if (done == r.count) return;
    auto sum = start(d, done);
    each_row([&](const std::byte* row) HWY_ATTR {
      sum = hn::Add(sum, load_first(elements, d, row + done * E::kBytes, r.count - done));
    });
    return store_floats(sum, d, sums + done);
  }
  if constexpr (kLanes > 8) rest(Floats<8>());
  if constexpr (kLanes > 4) rest(Floats<4>());
  rest(Floats<1>());
}

// In whole vectors, which may end behind them.
HWY_INLINE void clear(float* sums, int64_t count) {
  const Floats<kLanes> d;
  for (int64_t i = 0; i < count; i += kLanes) store_floats(hn::Zero(d), d, sums + i);
}

void sum_pool_rows(const PoolRowSums& r) {
  with_elements(r.type, [&](auto elements) HWY_ATTR {
    for (int64_t plane = 0; plane < r.planes; ++plane) {
      float* sums = r.sums + plane * r.sums_plane;
      const std::byte* source = r.source + plane * r.source_plane * elements.kBytes;
      if (r.padded) clear(sums - r.before, r.before);
      for (int64_t line = 0; line < r.lines; ++line, sums += r.sums_line) {
        sum_line(elements, r, source + line * r.source_line * elements.kBytes, sums);
        if (r.padded) clear(sums + r.count, r.sums_line - r.count - (line + 1 == r.lines ? r.before : 0));
      }
    }
  });
}

// Every other float of 2·lanes from `at` on.
template <class D>
HWY_INLINE hn::Vec<D> every_other(D d, const float* at) {
#if RG_HAS_LANES  // which has no such function
  if constexpr (hn::MaxLanes(D()) > 1)
    return hn::ConcatEven(d, hn::LoadU(d, at + hn::MaxLanes(D())), hn::LoadU(d, at));
#endif
  return load_floats(d, at);
}

template <class E>
HWY_INLINE void divide_places(const E& elements, const PoolDivision& r, const float* HWY_RESTRICT sums,
                              std::byte* HWY_RESTRICT out) {
  const auto store = [&](auto d, int64_t o, auto sum) HWY_ATTR {
    if (kFusesProducts && r.high != nullptr)
      return elements.store(
          hn::MulAdd(sum, load_floats(d, r.high + o), hn::Mul(sum, load_floats(d, r.low + o))), d,
          out + o * E::kBytes);
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
    const bool multiplies = kFusesProducts && r.high != nullptr;
    const float divisor = r.divisors[o] * r.factor, high = multiplies ? r.high[o] : 0,
                low = multiplies ? r.low[o] : 0;
    in_vectors(r.unit, [&](auto d, int64_t c) HWY_ATTR {
      auto sum = load_floats(d, at + c);
      for (int64_t t = 1; t < r.taps; ++t) sum = hn::Add(sum, load_floats(d, at + t * r.unit + c));
      const auto quotient = multiplies ? hn::MulAdd(sum, hn::Set(d, high), hn::Mul(sum, hn::Set(d, low)))
                                       : hn::Div(sum, hn::Set(d, divisor));
      elements.store(quotient, d, to + c * E::kBytes);
    });
  }
}

// The same of rows where they lie; `source` is place r.begin.
template <class E>
HWY_INLINE void divide_in_place(const E& elements, const PoolDivision& r, const PoolRowSums& rows,
                                const std::byte* HWY_RESTRICT source, std::byte* HWY_RESTRICT out) {
  const Floats<kLanes> d;
  for (int64_t o = 0; o < r.count; ++o) {
    std::byte* to = out + o * r.out_place * E::kBytes;
    const bool multiplies = kFusesProducts && r.high != nullptr;
    const float divisor = r.divisors[o] * r.factor, high = multiplies ? r.high[o] : 0,
                low = multiplies ? r.low[o] : 0;
    const int64_t begin = std::max(r.begin, o * r.stride), end = std::min(r.end, o * r.stride + r.taps);
    const auto each_row = [&](int64_t channel, const auto& add) HWY_ATTR {
      const std::byte* at = source + ((begin - r.begin) * r.place + channel) * E::kBytes;
      for (int64_t place = begin; place < end; ++place, at += r.place * E::kBytes)
        for (int64_t depth = 0; depth < rows.depths; ++depth)
          for (int64_t row = 0; row < rows.rows; ++row)
            add(at + (depth * rows.depth_stride + row * rows.row_stride) * E::kBytes);
    };
    const auto store = [&](auto tag, auto sum, int64_t channel) HWY_ATTR {
      const auto quotient = multiplies ? hn::MulAdd(sum, hn::Set(tag, high), hn::Mul(sum, hn::Set(tag, low)))
                                       : hn::Div(sum, hn::Set(tag, divisor));
      elements.store(quotient, tag, to + channel * E::kBytes);
    };
    // Four vectors at a time, which may start early where two or more are left.
    constexpr int64_t kFour = 4 * kLanes;
    int64_t done = 0;
    while (r.unit >= kFour && r.unit - done >= 2 * kLanes) {
      const int64_t c = std::min(done, r.unit - kFour);
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      each_row(c, [&](const std::byte* at) HWY_ATTR {
        prefetch(at + kAhead, kFour * E::kBytes);
        s0 = hn::Add(s0, elements.load(d, at));
        s1 = hn::Add(s1, elements.load(d, at + kLanes * E::kBytes));
        s2 = hn::Add(s2, elements.load(d, at + 2 * kLanes * E::kBytes));
        s3 = hn::Add(s3, elements.load(d, at + 3 * kLanes * E::kBytes));
      });
      store(d, s0, c);
      store(d, s1, c + kLanes);
      store(d, s2, c + 2 * kLanes);
      store(d, s3, c + 3 * kLanes);
      done = c + kFour;
    }
    in_vectors(r.unit - done, [&](auto tag, int64_t i) HWY_ATTR {
      auto sum = hn::Zero(tag);
      each_row(done + i, [&](const std::byte* at) HWY_ATTR { sum = hn::Add(sum, elements.load(tag, at)); });
      store(tag, sum, done + i);
    });
  }
}

void divide_windows(const PoolDivision& r) {
  with_elements(r.type, [&](auto elements) HWY_ATTR {
    for (int64_t i = 0; i < r.planes * r.lines; ++i) {
      const int64_t plane = i / r.lines, line = i % r.lines;
      const float* sums = r.sums + plane * r.sums_plane + line * r.sums_line;
      std::byte* out = r.out + (plane * r.out_plane + line * r.out_line) * elements.kBytes;
      if (r.add != nullptr)
        divide_in_place(elements, r, *r.add, r.add->source + line * r.add->source_line * elements.kBytes,
                        out);
      else
        r.unit == 1 ? divide_places(elements, r, sums, out) : divide_units(elements, r, sums, out);
    }
  });
}

void average_planes(const PoolPlanes& r) {
  const Floats<kLanes> d;
  with_elements(r.type, [&](auto elements) HWY_ATTR {
    for (int64_t plane = 0; plane < r.planes; ++plane) {
      const std::byte* source = r.source + plane * r.plane * elements.kBytes;
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      int64_t i = 0;
      const auto at = [&](int64_t place)
                          HWY_ATTR { return elements.load(d, source + place * elements.kBytes); };
      for (; i + 4 * kLanes <= r.count; i += 4 * kLanes) {
        s0 = hn::Add(s0, at(i));
        s1 = hn::Add(s1, at(i + kLanes));
        s2 = hn::Add(s2, at(i + 2 * kLanes));
        s3 = hn::Add(s3, at(i + 3 * kLanes));
      }
      for (; i + kLanes <= r.count; i += kLanes) {
        const auto next = hn::Add(s3, at(i));
        s3 = s2;
        s2 = next;
      }
      if (i < r.count) s0 = hn::Add(s0, load_first(elements, d, source + i * elements.kBytes, r.count - i));
      const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
      const Floats<1> one;
      elements.store(hn::Set(one, sum / r.divisor), one, r.out + plane * r.out_stride * elements.kBytes);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, sum_pool_rows)
RG_EXPORT(RG_CHOSEN, divide_windows)
RG_EXPORT(RG_CHOSEN, average_planes)

void sum_pool_rows(const PoolRowSums& rows) { chosen_sum_pool_rows()(rows); }
void divide_windows(const PoolDivision& division) { chosen_divide_windows()(division); }
void average_planes(const PoolPlanes& planes) { chosen_average_planes()(planes); }

// As in pool_divide-inl.h, which says why; half and half of a power of two.
bool pool_reciprocal(float divisor, float& high, float& low) {
  const float reciprocal = 1 / divisor;
  const auto magnitude = std::bit_cast<uint32_t>(divisor) & 0x7fff'ffffu;
  if (magnitude >= std::bit_cast<uint32_t>(0x1p20F)) return false;
  if ((magnitude & 0x7f'ffffu) == 0) {
    high = low = reciprocal / 2;
    return true;
  }
  const double exact = 1 / static_cast<double>(divisor);
  const bool beyond = std::abs(static_cast<double>(reciprocal)) > std::abs(exact);
  high = std::bit_cast<float>(std::bit_cast<uint32_t>(reciprocal) - (beyond ? 1u : 0u));
  low = static_cast<float>(exact - static_cast<double>(high));
  return true;
}

}  // namespace retrograd::kernels::cpu
#endif
