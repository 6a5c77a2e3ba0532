// SPDX-License-Identifier: Apache-2.0
// HIFLOAT8 from and to FP32: a prefix trades exponent bits for mantissa bits; half is rounded away from zero.
//
//   after the sign   |E|    mantissa   the exponent is a sign, then |E| without its leading one
//   0000 MMM         denormal: 2^(M - 23), zero for M = 0
//   0001 MMM         0      3
//   001 s MMM        1      3
//   01 s x MMM       2..3   3
//   10 s xx MM       4..7   2
//   11 s xxx M       8..15  1
#include <array>
#include <bit>
#include <limits>

#include "base/dtype.h"

namespace retrograd {
namespace {

constexpr uint32_t kHiF8NaN = 0x80;   // alone: zero and NaN have no sign
constexpr uint32_t kInfinity = 0x6f;  // the place of 1.5 * 2^15
constexpr uint32_t kExponentZero = 0x08;
constexpr int kDenormalBias = 23;
constexpr int kSmallestNormal = -15;  // exponents
constexpr int kF32Bias = 127;

// How the codes of one |E| are laid out; `width` is the number of binary digits of |E|.
struct Field {
  explicit constexpr Field(int width)
      : mantissa_bits(width <= 2 ? 3 : 5 - width),
        sign_at(mantissa_bits + (width > 0 ? width - 1 : 0)),
        prefix(width == 0   ? kExponentZero
               : width == 1 ? 0x10u
                            : static_cast<uint32_t>(width - 1) << 5) {}
  int mantissa_bits;
  int sign_at;  // the bit that holds the exponent's sign
  uint32_t prefix;
};

constexpr std::array<Field, 5> kFields{Field(0), Field(1), Field(2), Field(3), Field(4)};

// 2^exponent * (1 + fraction / 2^fraction_bits), a normal FP32 number.
constexpr float assemble(uint32_t sign, int exponent, uint32_t fraction, int fraction_bits) {
  return std::bit_cast<float>(sign << 31 | static_cast<uint32_t>(exponent + kF32Bias) << 23 |
                              fraction << (23 - fraction_bits));
}

constexpr float decode_hif8(uint32_t code) {
  const uint32_t sign = code >> 7;
  const uint32_t body = code & 0x7fu;
  if (code == 0) return 0.0f;
  if (code == kHiF8NaN) return std::numeric_limits<float>::quiet_NaN();
  if (body == kInfinity) return std::bit_cast<float>(sign << 31 | 0x7f80'0000u);
  if (body < kExponentZero) return assemble(sign, static_cast<int>(body) - kDenormalBias, 0, 0);
  const int width = body >= 0x20 ? static_cast<int>(body >> 5) + 1 : static_cast<int>(body >> 4);
  const Field& field = kFields[static_cast<size_t>(width)];
  const uint32_t mantissa = body & ((1u << field.mantissa_bits) - 1);
  if (width == 0) return assemble(sign, 0, mantissa, field.mantissa_bits);
  const uint32_t leading_one = 1u << (width - 1);
  const int magnitude = static_cast<int>(leading_one | ((body >> field.mantissa_bits) & (leading_one - 1)));
  const bool negative = ((body >> field.sign_at) & 1u) != 0;
  return assemble(sign, negative ? -magnitude : magnitude, mantissa, field.mantissa_bits);
}

constexpr std::array<float, 256> kHiF8Values = [] {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < table.size(); ++code) table[code] = decode_hif8(code);
  return table;
}();

constexpr uint32_t width_of(int exponent) {
  return static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(exponent < 0 ? -exponent : exponent)));
}

// The code, without its sign, of a finite FP32 magnitude. Between 2^E and 2^(E+1) the spacing is that of E,
// and 2^(E+1) itself is always representable, so rounding is one addition whose carry may enter the exponent.
constexpr uint32_t encode(uint32_t f32) {
  constexpr uint32_t kHalfOfSmallest = static_cast<uint32_t>(kF32Bias - kDenormalBias) << 23;  // 2^-23
  constexpr uint32_t kOverflow = std::bit_cast<uint32_t>(40960.0f);
  if (f32 < kHalfOfSmallest) return 0;
  if (f32 >= kOverflow) return kInfinity;

  const int exponent = static_cast<int>(f32 >> 23) - kF32Bias;
  // All of [2^-23, 2^-22) is nearest to the smallest value, or tied with zero.
  if (exponent == -kDenormalBias) return 1;
  const int kept = exponent < kSmallestNormal ? 0 : kFields[width_of(exponent)].mantissa_bits;
  const uint32_t rounded = f32 + (1u << (22 - kept));

  const int e = static_cast<int>(rounded >> 23) - kF32Bias;
  if (e < kSmallestNormal) return static_cast<uint32_t>(e + kDenormalBias);
  const uint32_t width = width_of(e);
  const Field& field = kFields[width];
  const uint32_t mantissa = (rounded & 0x7f'ffffu) >> (23 - field.mantissa_bits);
  if (width == 0) return field.prefix | mantissa;
  const uint32_t magnitude = static_cast<uint32_t>(e < 0 ? -e : e) & ~(1u << (width - 1));
  const uint32_t negative = e < 0 ? 1u : 0u;
  return field.prefix | negative << field.sign_at | magnitude << field.mantissa_bits | mantissa;
}

}  // namespace

float hif8_to_f32(uint8_t bits) { return kHiF8Values[bits]; }

uint8_t f32_to_hif8(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t f32 = bits & 0x7fff'ffffu;
  if (f32 > 0x7f80'0000u) return kHiF8NaN;
  const uint32_t code = encode(f32);
  return static_cast<uint8_t>(code == 0 ? 0u : code | (bits >> 31) << 7);
}

}  // namespace retrograd
