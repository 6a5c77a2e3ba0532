// SPDX-License-Identifier: Apache-2.0
// grad_output / divisor, once for every instruction set.
#include "kernels/cpu/pooling/pool_quotients.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling/pool_quotients.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_divide-inl.h"
#include "kernels/cpu/pooling/pool_vectors-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

template <class E, class Divide>
HWY_NOINLINE void divide_line(const E& elements, const std::byte* HWY_RESTRICT in, int64_t count,
                              Divide divide, float* HWY_RESTRICT out) {
  in_vectors(count,
             [=](auto d, int64_t i) { store(divide(d, elements.load(d, in + i * E::kBytes)), d, out + i); });
}

// `rows` lines that follow each other in memory, `pitch` floats apart in `out`. The vector of `d` with the
// last numbers of a line ends with zeros, for zeros or the next line come behind it.
template <class D, class E, class Divide>
HWY_INLINE void divide_lines(D d, const E& elements, const std::byte* HWY_RESTRICT in, int64_t rows,
                             int64_t count, Divide divide, int64_t pitch, float* HWY_RESTRICT out) {
  const Floats<kLanes> full;
  constexpr auto kLast = static_cast<int64_t>(hn::MaxLanes(D()));
  const int64_t whole = count / kLanes * kLanes, reach = whole + kLast;
  const auto last = hn::FirstN(d, static_cast<size_t>(count - whole));
  int64_t row = 0;
  for (; rows * count - row * count >= reach; ++row, in += count * E::kBytes, out += pitch) {
    for (int64_t i = 0; i < whole; i += kLanes)
      store(divide(full, elements.load(full, in + i * E::kBytes)), full, out + i);
    const auto v = hn::IfThenElseZero(last, elements.load(d, in + whole * E::kBytes));
    store(divide(d, v), d, out + whole);
  }
  for (; row < rows; ++row, in += count * E::kBytes, out += pitch)
    divide_line(elements, in, count, divide, out);
}

// Rows of `p.in`, dense and divided by one number.
template <class E, class Divide>
HWY_INLINE void divide_dense(const E& elements, const std::byte* HWY_RESTRICT in, int64_t rows, int64_t line,
                             Divide divide, int64_t pitch, float* HWY_RESTRICT out) {
  const int64_t last = line % kLanes;
  if (pitch == line) return divide_line(elements, in, rows * line, divide, out);
  if (last == 0) {
    const Floats<kLanes> d;
    for (int64_t row = 0; row < rows; ++row, in += line * E::kBytes, out += pitch)
      for (int64_t i = 0; i < line; i += kLanes)
        store(divide(d, elements.load(d, in + i * E::kBytes)), d, out + i);
    return;
  }
  if constexpr (kIsFloat<E>) {
    if (last <= 4) return divide_lines(Floats<4>(), elements, in, rows, line, divide, pitch, out);
    if (last <= 8) return divide_lines(Floats<8>(), elements, in, rows, line, divide, pitch, out);
  }
  divide_lines(Floats<kLanes>(), elements, in, rows, line, divide, pitch, out);
}

template <class E>
HWY_INLINE void divide_row(const PoolVolumes& p, const E& elements, const std::byte* HWY_RESTRICT in,
                           float outer, float* HWY_RESTRICT out) {
  if (p.counts.each == nullptr && p.in.place == 1) {
    return with_divide<E>(outer * p.counts.all,
                          [&](auto divide) { divide_line(elements, in, p.y, divide, out); });
  }
  if (p.in.place == 1) {
    return in_vectors(p.y, [&](auto d, int64_t i) {
      const auto divisor = hn::Mul(load(d, p.counts.each + i), hn::Set(d, outer));
      store(hn::Div(elements.load(d, in + i * E::kBytes), divisor), d, out + i);
    });
  }
  using By = std::conditional_t<kIsFloat<E>, ByDivision, ByAny>;
  for (int64_t j = 0; j < p.y; ++j, in += p.in.place * E::kBytes)
    divide_line(elements, in, 1, By(ByDivision{outer * p.counts[j]}), out + j);
}

// Windows side by side, whose divisors come again and again.
template <class E>
HWY_NOINLINE void divide_in_turn(const E& elements, const std::byte* HWY_RESTRICT in, int64_t count,
                                 const PoolTerms& listed, float* HWY_RESTRICT out) {
  const Floats<kLanes> d;
  for (int64_t first = 0; first < count; first += listed.divided) {
    const int64_t whole = std::min(listed.divided, (count - first) / kLanes * kLanes);
    int64_t i = 0;
    for (; i < whole; i += kLanes)
      store(hn::Div(elements.load(d, in + (first + i) * E::kBytes), load(d, listed.divisors + i)), d,
            out + first + i);
    for (const Floats<1> one; i < std::min(listed.divided, count - first); ++i)
      store(hn::Div(elements.load(one, in + (first + i) * E::kBytes), load(one, listed.divisors + i)), one,
            out + first + i);
  }
}

void divide_volumes(const PoolVolumes& p, const std::byte* in, int64_t count, float* quotients) {
  const PoolTensor& t = p.in;
  const int64_t line = p.y, plane = p.row_windows * line, volume = p.depth_windows * plane;
  const int64_t rows = count * p.depth_windows * p.row_windows, pitch = p.pitch;
  const bool dense = t.place == 1 && (p.row_windows == 1 || t.row == line) &&
                     (p.depth_windows == 1 || t.depth == plane) && (count == 1 || t.volume == volume);
  const bool same =
      p.depth_counts.each == nullptr && p.row_counts.each == nullptr && p.counts.each == nullptr;
  with_pool_elements(t.dtype, [&](auto elements) {
    if (p.listed.divisors != nullptr)
      return divide_in_turn(elements, in, count * volume, p.listed, quotients);
    if (dense && same) {
      const float divisor = p.depth_counts.all * p.row_counts.all * p.counts.all;
      return with_divide<decltype(elements)>(
          divisor, [&](auto divide) { divide_dense(elements, in, rows, line, divide, pitch, quotients); });
    }
    for (int64_t v = 0; v < count; ++v)
      for (int64_t d = 0; d < p.depth_windows; ++d)
        for (int64_t h = 0; h < p.row_windows; ++h, quotients += pitch)
          divide_row(p, elements, in + (v * t.volume + d * t.depth + h * t.row) * elements.kBytes,
                     p.depth_counts[d] * p.row_counts[h], quotients);
  });
}

void pool_fill(const PoolFill& f, const std::byte* in, std::byte* out, int64_t volumes) {
  const ByDivision divide{f.divisor};
  const Floats<1> one;
  with_pool_elements(f.in_type, [&](auto from) {
    with_pool_elements(f.out_type, [&](auto to) {
      for (int64_t v = 0; v < volumes; ++v) {
        const float value = hn::GetLane(divide(one, from.load(one, in + v * f.in_stride * from.kBytes)));
        std::byte* at = out + v * f.size * to.kBytes;
        in_vectors(f.size, [&](auto d, int64_t i) { to.store(hn::Set(d, value), d, at + i * to.kBytes); });
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, divide_volumes)
RG_EXPORT(RG_CHOSEN, pool_fill)

void divide_volumes(const PoolVolumes& p, const std::byte* in, int64_t count, float* quotients) {
  chosen_divide_volumes()(p, in, count, quotients);
}
void pool_fill(const PoolFill& fill, const std::byte* in, std::byte* out, int64_t volumes) {
  chosen_pool_fill()(fill, in, out, volumes);
}

}  // namespace retrograd::kernels::cpu
#endif
