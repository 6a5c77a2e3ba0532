// SPDX-License-Identifier: Apache-2.0
// Numbers the formats name: thresholds, the published HIFLOAT8 table, HF32 rounding, operand rounding, type
// names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "codec_cases.h"

namespace retrograd::test::format_rules_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float below(float value) { return std::nextafter(value, 0.0f); }
float above(float value) { return std::nextafter(value, kInfinity); }
float power(int exponent) { return std::ldexp(1.0f, exponent); }

TEST(HiF8, AgreesWithThePublishedTableInAllCodes) {
  std::ifstream file(HIF8_TABLE);
  ASSERT_TRUE(file) << HIF8_TABLE;
  std::string line;
  std::getline(file, line);
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 11u) << line;
    const uint8_t code = static_cast<uint8_t>(std::stoul(cells[1]));
    ASSERT_EQ(code, rows);
    const double expected = std::strtod(cells[10].c_str(), nullptr);
    if (cells[8] == "nan") {
      EXPECT_TRUE(std::isnan(hif8_to_f32(code))) << line;
      EXPECT_EQ(f32_to_hif8(kNaN), code);
    } else {
      EXPECT_EQ(static_cast<double>(hif8_to_f32(code)), expected) << line;
      EXPECT_EQ(f32_to_hif8(static_cast<float>(expected)), code) << line;
    }
  }
  EXPECT_EQ(rows, 256);
}

TEST(HiF8, OverflowsFrom40960Upwards) {
  EXPECT_EQ(f32_to_hif8(32768.0f), 0x6e);
  EXPECT_EQ(f32_to_hif8(below(40960.0f)), 0x6e);
  EXPECT_EQ(f32_to_hif8(40960.0f), 0x6f);
  EXPECT_EQ(f32_to_hif8(-below(40960.0f)), 0xee);
  EXPECT_EQ(f32_to_hif8(-40960.0f), 0xef);
  EXPECT_EQ(f32_to_hif8(std::numeric_limits<float>::max()), 0x6f);
  EXPECT_EQ(f32_to_hif8(kInfinity), 0x6f);
  EXPECT_EQ(f32_to_hif8(-kInfinity), 0xef);
}

TEST(HiF8, UnderflowsToPlainZeroBelowHalfOfTheSmallestValue) {
  EXPECT_EQ(f32_to_hif8(power(-23)), 0x01);
  EXPECT_EQ(f32_to_hif8(-power(-23)), 0x81);
  EXPECT_EQ(hif8_to_f32(0x01), power(-22));
  EXPECT_EQ(f32_to_hif8(below(power(-23))), 0x00);
  EXPECT_EQ(f32_to_hif8(-below(power(-23))), 0x00);
  EXPECT_EQ(f32_to_hif8(-0.0f), 0x00);
  EXPECT_EQ(f32_to_hif8(std::numeric_limits<float>::denorm_min()), 0x00);
}

TEST(HiF8, RoundsDenormalsAtOneAndAHalf) {
  for (int e = -22; e <= -16; ++e) {
    const float tie = 1.5f * power(e);
    EXPECT_EQ(hif8_to_f32(f32_to_hif8(below(tie))), power(e));
    EXPECT_EQ(hif8_to_f32(f32_to_hif8(tie)), power(e + 1));
    EXPECT_EQ(hif8_to_f32(f32_to_hif8(-tie)), -power(e + 1));
  }
}

TEST(HiF8, HasOneNaNWhateverItsSign) {
  EXPECT_EQ(f32_to_hif8(kNaN), 0x80);
  EXPECT_EQ(f32_to_hif8(-kNaN), 0x80);
  EXPECT_EQ(f32_to_hif8(float_of(0x7f80'0001u)), 0x80);
}

TEST(E4M3, Rounds464To448AndAboveToNaN) {
  EXPECT_EQ(f32_to_e4m3(448.0f), 0x7e);
  EXPECT_EQ(f32_to_e4m3(464.0f), 0x7e);
  EXPECT_EQ(f32_to_e4m3(-464.0f), 0xfe);
  EXPECT_EQ(f32_to_e4m3(above(464.0f)), 0x7f);
  EXPECT_EQ(f32_to_e4m3(-above(464.0f)), 0xff);
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::max()), 0x7f);
  EXPECT_EQ(f32_to_e4m3(kInfinity), 0x7f);
  EXPECT_EQ(f32_to_e4m3(-kInfinity), 0xff);
}

TEST(E4M3, KeepsSubnormalsAndTheSignOfZero) {
  EXPECT_EQ(f32_to_e4m3(power(-9)), 0x01);
  EXPECT_EQ(f32_to_e4m3(power(-10)), 0x00);
  EXPECT_EQ(f32_to_e4m3(above(power(-10))), 0x01);
  EXPECT_EQ(f32_to_e4m3(-0.0f), 0x80);
}

TEST(F16, OverflowsFrom65520Upwards) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(below(65520.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-65520.0f), 0xfc00);
}

TEST(F16, KeepsSubnormals) {
  EXPECT_EQ(f32_to_f16(power(-24)), 0x0001);
  EXPECT_EQ(f32_to_f16(power(-25)), 0x0000);
  EXPECT_EQ(f32_to_f16(above(power(-25))), 0x0001);
  EXPECT_EQ(f32_to_f16(-power(-26)), 0x8000);
}

TEST(F16, ANaNWithItsPayloadInTheDroppedBitsDoesNotBecomeInfinity) {
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(float_of(0x7f80'0001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(float_of(0xff80'0001u)))));
}

TEST(BF16, ANaNWithAllOnesDoesNotCarryIntoZero) {
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(float_of(0x7fff'ffffu)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(float_of(0xffff'ffffu)))));
}

#ifdef __FLT16_MAX__
#if defined(__aarch64__)
using CompilersHalf = __fp16;  // g++ 12 has _Float16 on ARM in C only
#else
using CompilersHalf = _Float16;
#endif
TEST(F16, AgreesWithTheCompilersOwnType) {
  for (uint32_t code = 0; code < 0x10000u; ++code) {
    const uint16_t bits = static_cast<uint16_t>(code);
    CompilersHalf theirs;
    std::memcpy(&theirs, &bits, sizeof theirs);
    const float decoded = f16_to_f32(bits);
    if (std::isnan(decoded))
      EXPECT_TRUE(std::isnan(static_cast<float>(theirs))) << code;
    else
      EXPECT_EQ(bits_of(decoded), bits_of(static_cast<float>(theirs))) << code;
  }
  for (const float value : f32_sample()) {
    if (std::isnan(value)) continue;
    const auto theirs = static_cast<CompilersHalf>(value);
    uint16_t bits;
    std::memcpy(&bits, &theirs, sizeof bits);
    ASSERT_EQ(f32_to_f16(value), bits) << std::hexfloat << value;
  }
}
#endif

// Half away from zero at the spacing of the kept bits, in double, where every step is exact.
float slow_hf32(float value, int mantissa_bits) {
  if (std::isinf(value) || value == 0.0f) return value;
  const int exponent =
      std::max(std::ilogb(static_cast<double>(value)), -126);  // subnormals share one spacing
  const double rounded = std::ldexp(
      std::round(std::ldexp(static_cast<double>(value), mantissa_bits - exponent)), exponent - mantissa_bits);
  if (std::fabs(rounded) >= std::ldexp(1.0, 128)) return std::copysign(kInfinity, value);
  return std::copysign(static_cast<float>(rounded), value);
}

class Hf32 : public testing::TestWithParam<int> {
 protected:
  uint32_t half() const { return 1u << (22 - GetParam()); }
};

TEST_P(Hf32, RoundsHalfAwayFromZero) {
  for (const float value : f32_sample()) {
    if (std::isnan(value)) continue;
    ASSERT_EQ(bits_of(round_to_hf32(value, GetParam())), bits_of(slow_hf32(value, GetParam())))
        << std::hexfloat << value;
  }
}

TEST_P(Hf32, RoundsTheTieUpAndItsLowerNeighbourDown) {
  const uint32_t one = bits_of(1.0f);
  for (const uint32_t sign : {0u, 0x8000'0000u}) {
    EXPECT_EQ(bits_of(round_to_hf32(float_of(sign | (one + half())), GetParam())), sign | (one + 2 * half()));
    EXPECT_EQ(bits_of(round_to_hf32(float_of(sign | (one + half() - 1)), GetParam())), sign | one);
  }
}

TEST_P(Hf32, CarriesIntoTheExponent) { EXPECT_EQ(round_to_hf32(below(2.0f), GetParam()), 2.0f); }

TEST_P(Hf32, OverflowsToInfinityAndKeepsIt) {
  EXPECT_EQ(round_to_hf32(std::numeric_limits<float>::max(), GetParam()), kInfinity);
  EXPECT_EQ(round_to_hf32(std::numeric_limits<float>::lowest(), GetParam()), -kInfinity);
  EXPECT_EQ(round_to_hf32(kInfinity, GetParam()), kInfinity);
  EXPECT_EQ(round_to_hf32(-kInfinity, GetParam()), -kInfinity);
}

TEST_P(Hf32, KeepsNaN) {
  for (const uint32_t bits : {0x7fc0'0000u, 0x7f80'0001u, 0x7fff'ffffu, 0xffff'ffffu, 0xff80'0001u}) {
    EXPECT_TRUE(std::isnan(round_to_hf32(float_of(bits), GetParam()))) << std::hex << bits;
  }
}

TEST_P(Hf32, LeavesRoundedValuesAlone) {
  for (const float value : f32_sample()) {
    if (std::isnan(value)) continue;
    const float once = round_to_hf32(value, GetParam());
    ASSERT_EQ(bits_of(round_to_hf32(once, GetParam())), bits_of(once));
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, Hf32, testing::Values(10, 11), testing::PrintToStringParamName());

TEST(OperandRounding, AppliesTheRoundingItNames) {
  for (const float value : every_half()) {
    // Bits below every kept one, so that each rounding has something to do.
    const float x = float_of(bits_of(value) ^ 0x0000'1a55u);
    if (std::isnan(x)) continue;
    EXPECT_EQ(bits_of(apply(OperandRounding::kNone, x)), bits_of(x));
    EXPECT_EQ(bits_of(apply(OperandRounding::kF16, x)), bits_of(f16_to_f32(f32_to_f16(x))));
    EXPECT_EQ(bits_of(apply(OperandRounding::kHf32Bits11, x)), bits_of(slow_hf32(x, 11)));
    EXPECT_EQ(bits_of(apply(OperandRounding::kHf32Bits10, x)), bits_of(slow_hf32(x, 10)));
  }
}

TEST(DType, F32IsLoadedAndStoredBitForBit) {
  for (const uint32_t bits : {0u, 0x8000'0000u, 1u, 0x3f80'0001u, 0x7f7f'ffffu, 0x7f80'0000u, 0xffc0'1234u}) {
    unsigned char memory[6] = {};
    store_from_f32(DType::kF32, memory + 1, float_of(bits));
    EXPECT_EQ(bits_of(load_as_f32(DType::kF32, memory + 1)), bits);
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[5], 0);
  }
}

TEST(DType, HasASizeANameAndAWayBackFromIt) {
  const struct {
    DType dtype;
    size_t size;
    std::string_view name;
  } rows[] = {{DType::kF32, 4, "f32"},
              {DType::kF16, 2, "f16"},
              {DType::kBF16, 2, "bf16"},
              {DType::kHiF8, 1, "hif8"},
              {DType::kE4M3, 1, "e4m3"}};
  EXPECT_EQ(std::size(rows), static_cast<size_t>(kDTypeCount));
  for (const auto& row : rows) {
    EXPECT_EQ(size_of(row.dtype), row.size);
    EXPECT_EQ(name_of(row.dtype), row.name);
    EXPECT_EQ(dtype_from_name(row.name), row.dtype);
    EXPECT_EQ(is_8bit(row.dtype), row.size == 1);
  }
  for (const std::string_view name : {"", "f", "f64", "F32", "f32 ", "bf1"})
    EXPECT_EQ(dtype_from_name(name), std::nullopt);
}

}  // namespace
}  // namespace retrograd::test::format_rules_test
