// SPDX-License-Identifier: Apache-2.0
// Formulas written from the tables of the formats with ldexp and text, sharing nothing with src/base.
#include "codec_cases.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace retrograd::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Sign, exponent and mantissa fields of an IEEE-like code, its top exponent still ordinary.
double ieee_value(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int field = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(code & ((1u << mantissa_bits) - 1), -mantissa_bits);
  const double magnitude =
      field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, field - bias);
  return (code >> (exponent_bits + mantissa_bits)) & 1u ? -magnitude : magnitude;
}

double f16_formula(uint32_t code) {
  if ((code & 0x7fffu) == 0x7c00u) return code & 0x8000u ? -kInfinity : kInfinity;
  return (code & 0x7c00u) == 0x7c00u ? kNaN : ieee_value(code, 5, 10);
}

double bf16_formula(uint32_t code) {
  if ((code & 0x7fffu) == 0x7f80u) return code & 0x8000u ? -kInfinity : kInfinity;
  return (code & 0x7f80u) == 0x7f80u ? kNaN : ieee_value(code, 8, 7);
}

double e4m3_formula(uint32_t code) { return (code & 0x7fu) == 0x7fu ? kNaN : ieee_value(code, 4, 3); }

// Reads the code as text, prefix by prefix, as its table does.
double hif8_formula(uint32_t code) {
  const std::string text = std::bitset<8>(code).to_string();
  const double sign = text[0] == '1' ? -1.0 : 1.0;
  const std::string body = text.substr(1);
  if (text == "00000000") return 0.0;
  if (text == "10000000") return kNaN;
  if (body == "1101111") return sign * kInfinity;
  const auto number = [](const std::string& digits) {
    return digits.empty() ? 0 : std::stoi(digits, nullptr, 2);
  };
  if (body.starts_with("0000")) return sign * std::ldexp(1.0, number(body.substr(4)) - 23);

  struct Row {
    std::string prefix;
    size_t exponent_digits;
    int first_exponent;
  };
  const Row rows[] = {{"0001", 0, 0}, {"001", 0, 1}, {"01", 1, 2}, {"10", 2, 4}, {"11", 3, 8}};
  for (const Row& row : rows) {
    if (!body.starts_with(row.prefix)) continue;
    std::string rest = body.substr(row.prefix.size());
    int exponent = row.first_exponent;
    if (exponent != 0) {
      exponent += number(rest.substr(1, row.exponent_digits));
      if (rest[0] == '1') exponent = -exponent;
      rest = rest.substr(1 + row.exponent_digits);
    }
    return sign * std::ldexp(1.0 + std::ldexp(number(rest), -static_cast<int>(rest.size())), exponent);
  }
  return kNaN;
}

}  // namespace

const std::vector<CodecCase>& codec_cases() {
  static const std::vector<CodecCase> cases = {
      {"f16", DType::kF16, 16, f16_formula, [](uint32_t c) { return f16_to_f32(static_cast<uint16_t>(c)); },
       [](float v) -> uint32_t { return f32_to_f16(v); }, Tie::kToEven, 0x7c00, 65536.0, true},
      {"bf16", DType::kBF16, 16, bf16_formula,
       [](uint32_t c) { return bf16_to_f32(static_cast<uint16_t>(c)); },
       [](float v) -> uint32_t { return f32_to_bf16(v); }, Tie::kToEven, 0x7f80, std::ldexp(1.0, 128), true},
      {"hif8", DType::kHiF8, 8, hif8_formula, [](uint32_t c) { return hif8_to_f32(static_cast<uint8_t>(c)); },
       [](float v) -> uint32_t { return f32_to_hif8(v); }, Tie::kAwayFromZero, 0x6f, 49152.0, false},
      {"e4m3", DType::kE4M3, 8, e4m3_formula, [](uint32_t c) { return e4m3_to_f32(static_cast<uint8_t>(c)); },
       [](float v) -> uint32_t { return f32_to_e4m3(v); }, Tie::kToEven, 0x7f, 480.0, true},
  };
  return cases;
}

SlowEncoder::SlowEncoder(const CodecCase& codec) : codec_(codec) {
  for (uint32_t code = 0; code < codec.sign_bit(); ++code) {
    const double value = codec.formula(code);
    if (std::isfinite(value)) ladder_.emplace_back(value, code);
  }
  ladder_.emplace_back(codec.overflow_value, codec.overflow_code);
  std::sort(ladder_.begin(), ladder_.end());
}

uint32_t SlowEncoder::encode(float value) const {
  const double magnitude = std::fabs(static_cast<double>(value));
  const auto upper = std::partition_point(ladder_.begin(), ladder_.end(),
                                          [&](const auto& rung) { return rung.first < magnitude; });
  uint32_t code = codec_.overflow_code;
  if (upper == ladder_.begin()) {
    code = upper->second;
  } else if (upper != ladder_.end()) {
    const auto lower = upper - 1;
    const double midpoint = (lower->first + upper->first) / 2;  // exact: both have few bits
    const bool tie_goes_up = codec_.tie == Tie::kAwayFromZero || upper->second % 2 == 0;
    code = magnitude > midpoint || (magnitude == midpoint && tie_goes_up) ? upper->second : lower->second;
  }
  const bool is_zero = code == ladder_.front().second;
  if (std::signbit(value) && (codec_.signed_zero || !is_zero)) code |= codec_.sign_bit();
  return code;
}

std::vector<float> every_half() {
  std::vector<float> values;
  for (uint32_t code = 0; code < 0x10000u; ++code) {
    values.push_back(static_cast<float>(f16_formula(code)));
    values.push_back(static_cast<float>(bf16_formula(code)));
  }
  return values;
}

std::vector<float> f32_sample() {
  constexpr int kRandomCount = 1'000'000;
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent <= 0xff; ++exponent) {
    for (const uint32_t mantissa : {0u, 1u, 2u, 0x3f'ffffu, 0x40'0000u, 0x40'0001u, 0x7f'fffeu, 0x7f'ffffu}) {
      values.push_back(float_of(exponent << 23 | mantissa));
      values.push_back(float_of(0x8000'0000u | exponent << 23 | mantissa));
    }
  }
  std::mt19937 random(20240607);  // patterns, not values: every exponent is as likely as any other
  for (int i = 0; i < kRandomCount; ++i) values.push_back(float_of(static_cast<uint32_t>(random())));
  return values;
}

std::vector<float> critical_points(const SlowEncoder& encoder) {
  std::vector<float> values;
  const auto add_with_neighbours = [&values](double point) {
    const float centre = static_cast<float>(point);
    float below = centre, above = centre;
    values.push_back(centre);
    for (int step = 0; step < 2; ++step) {
      below = std::nextafter(below, -std::numeric_limits<float>::infinity());
      above = std::nextafter(above, std::numeric_limits<float>::infinity());
      values.push_back(below);
      values.push_back(above);
    }
  };
  const auto& ladder = encoder.ladder();
  for (size_t i = 0; i < ladder.size(); ++i) {
    for (const double sign : {1.0, -1.0}) {
      add_with_neighbours(sign * ladder[i].first);
      if (i > 0) add_with_neighbours(sign * (ladder[i - 1].first + ladder[i].first) / 2);
    }
  }
  return values;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace retrograd::test
