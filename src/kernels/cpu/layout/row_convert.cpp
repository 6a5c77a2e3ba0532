// SPDX-License-Identifier: Apache-2.0
// Conversions of rows, once for every instruction set.
#include "kernels/cpu/layout/row_convert.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layout/row_convert.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

void decode_rows(DType dtype, const std::byte* source, int64_t step, int64_t rows, int64_t count, float* out,
                 int64_t pitch) {
  if (step == count && pitch == count) count *= std::exchange(rows, 1);  // one behind the other
  // By vectors this would be stored, read and stored again.
  if (dtype == DType::kHiF8) {
    const float* HWY_RESTRICT values = hif8_values();
    for (int64_t r = 0; r < rows; ++r, source += step, out += pitch)
      for (int64_t i = 0; i < count; ++i) out[i] = values[static_cast<uint8_t>(source[i])];
    return;
  }
  with_elements(dtype, [&](auto elements) {
    for (int64_t r = 0; r < rows; ++r, source += step * elements.kBytes, out += pitch)
      in_vectors(count, [&](auto d, int64_t i) {
        store_codes(elements.load(d, source + i * elements.kBytes), d, reinterpret_cast<std::byte*>(out + i));
      });
  });
}

void encode_rows(DType dtype, const float* in, int64_t pitch, int64_t rows, int64_t count,
                 std::byte* destination, int64_t step) {
  if (pitch == count && step == count) count *= std::exchange(rows, 1);  // one behind the other
  with_elements(dtype, [&](auto elements) {
    for (int64_t r = 0; r < rows; ++r, in += pitch, destination += step * elements.kBytes)
      in_vectors(count, [&](auto d, int64_t i) {
        const auto value = load_codes(d, reinterpret_cast<const std::byte*>(in + i));
        elements.store(value, d, destination + i * elements.kBytes);
      });
  });
}

template <int kMantissaBits, class D>
HWY_INLINE hn::Vec<D> cut_mantissa(D d, hn::Vec<D> v) {
  constexpr uint32_t kHalf = 1u << (23 - kMantissaBits - 1);
  const hn::Rebind<uint32_t, D> words;
  const auto sum = hn::Add(hn::BitCast(words, v), hn::Set(words, kHalf));
  const auto cut = hn::BitCast(d, hn::And(sum, hn::Set(words, ~(2 * kHalf - 1))));
  return hn::IfThenElse(hn::IsNaN(v), v, cut);
}

template <class D>
HWY_INLINE hn::Vec<D> round_to_half(D d, hn::Vec<D> v) {
  HWY_ALIGN std::byte codes[2 * hn::MaxLanes(d)];
  const Elements<DType::kF16> elements;
  elements.store(v, d, codes);
  return elements.load(d, codes);
}

// Rounding what is rounded changes nothing, so vectors may overlap.
void round_row(OperandRounding rounding, float* row, int64_t count) {
  const auto each = [&](auto round) {
    in_vectors(count, [&](auto d, int64_t i) {
      auto* at = reinterpret_cast<std::byte*>(row + i);
      store_codes(round(d, load_codes(d, at)), d, at);
    });
  };
  switch (rounding) {
    case OperandRounding::kNone:
      return;
    case OperandRounding::kF16:
      return each([](auto d, auto v) { return round_to_half(d, v); });
    case OperandRounding::kHf32Bits11:
      return each([](auto d, auto v) { return cut_mantissa<11>(d, v); });
    case OperandRounding::kHf32Bits10:
      return each([](auto d, auto v) { return cut_mantissa<10>(d, v); });
  }
}

// Zero times what is not finite is NaN, and stays in the sum.
bool all_finite(const float* values, int64_t count) {
  const Floats<kLanes> d;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  const auto zero = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    sum0 = hn::MulAdd(zero, hn::LoadU(d, values + i), sum0);
    sum1 = hn::MulAdd(zero, hn::LoadU(d, values + i + kLanes), sum1);
    sum2 = hn::MulAdd(zero, hn::LoadU(d, values + i + 2 * kLanes), sum2);
    sum3 = hn::MulAdd(zero, hn::LoadU(d, values + i + 3 * kLanes), sum3);
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  bool finite = hn::AllTrue(d, hn::Eq(sum, zero));
  in_vectors(count - i, [&](auto tag, int64_t at) {
    const auto v = load_codes(tag, reinterpret_cast<const std::byte*>(values + i + at));
    finite &= hn::AllTrue(tag, hn::Eq(hn::Mul(v, hn::Zero(tag)), hn::Zero(tag)));
  });
  return finite;
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_WIDEST, decode_rows)
RG_EXPORT(RG_WIDEST, encode_rows)
RG_EXPORT(RG_WIDEST, round_row)
RG_EXPORT(RG_WIDEST, all_finite)

void decode_rows(DType dtype, const std::byte* source, int64_t step, int64_t rows, int64_t count, float* out,
                 int64_t pitch) {
  chosen_decode_rows()(dtype, source, step, rows, count, out, pitch);
}
void encode_rows(DType dtype, const float* in, int64_t pitch, int64_t rows, int64_t count,
                 std::byte* destination, int64_t step) {
  chosen_encode_rows()(dtype, in, pitch, rows, count, destination, step);
}
void round_row(OperandRounding rounding, float* row, int64_t count) {
  chosen_round_row()(rounding, row, count);
}
bool all_finite(const float* values, int64_t count) { return chosen_all_finite()(values, count); }

}  // namespace retrograd::kernels::cpu
#endif
