// SPDX-License-Identifier: Apache-2.0
// Conversions of rows against the codecs of base/dtype.h: every code, every boundary, every length.
#include "kernels/cpu/layout/row_convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace retrograd::kernels::cpu {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kHiF8, DType::kE4M3};
constexpr OperandRounding kRoundings[] = {OperandRounding::kNone, OperandRounding::kF16,
                                          OperandRounding::kHf32Bits11, OperandRounding::kHf32Bits10};

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// Bit for bit, but a NaN need only stay one of the same sign.
bool same(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) && std::signbit(a) == std::signbit(b);
  return bits_of(a) == bits_of(b);
}

// Every value of the upper half of a pattern with telling lower halves, the values of all codes and the
// middles between neighbours with what lies beside them, and noise.
std::vector<float> telling_values(DType dtype) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  if (dtype != DType::kF32) {
    std::vector<float> codes;
    for (uint32_t code = 0; code < 1u << (8 * size_of(dtype)); ++code) {
      const float value = load_as_f32(dtype, &code);
      if (std::isfinite(value)) codes.push_back(value);
    }
    std::sort(codes.begin(), codes.end());
    for (size_t i = 0; i + 1 < codes.size(); ++i)
      for (const float value : {codes[i], codes[i] + (codes[i + 1] - codes[i]) / 2, codes[i + 1]})
        for (const uint32_t step : {0xffff'ffffu, 0u, 1u})
          values.push_back(std::bit_cast<float>(bits_of(value) + step));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return values;
}

TEST(RowConvert, EveryCodeIsDecodedAsTheCodecSays) {
  for (const DType dtype : kTypes) {
    if (dtype == DType::kF32) continue;
    const size_t bytes = size_of(dtype), count = size_t{1} << (8 * bytes);
    std::vector<std::byte> codes(count * bytes);
    for (size_t i = 0; i < count; ++i) std::memcpy(&codes[i * bytes], &i, bytes);
    std::vector<float> out(count);
    decode_row(dtype, codes.data(), static_cast<int64_t>(count), out.data());
    for (size_t i = 0; i < count; ++i)
      ASSERT_TRUE(same(out[i], load_as_f32(dtype, &i))) << name_of(dtype) << " code " << i << ": " << out[i];
  }
}

TEST(RowConvert, ValuesAreEncodedAsTheCodecSays) {
  for (const DType dtype : kTypes) {
    const std::vector<float> values = telling_values(dtype);
    const size_t bytes = size_of(dtype);
    std::vector<std::byte> out(values.size() * bytes);
    encode_row(dtype, values.data(), static_cast<int64_t>(values.size()), out.data());
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t want = 0, got = 0;
      store_from_f32(dtype, &want, values[i]);
      std::memcpy(&got, &out[i * bytes], bytes);
      ASSERT_EQ(got, want) << name_of(dtype) << " of " << std::hexfloat << values[i];
    }
  }
}

TEST(RowConvert, RoundsAsTheCodecSays) {
  const std::vector<float> values = telling_values(DType::kF16);
  for (const OperandRounding rounding : kRoundings) {
    std::vector<float> row = values;
    round_row(rounding, row.data(), static_cast<int64_t>(row.size()));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(same(row[i], apply(rounding, values[i])))
          << static_cast<int>(rounding) << " of " << std::hexfloat << values[i] << ": " << row[i];
  }
}

TEST(RowConvert, EveryLengthAtOddAddressesAndNothingBeside) {
  constexpr auto kGuard = std::byte{0x5a};
  for (const DType dtype : kTypes)
    for (int64_t count = 0; count <= 70; ++count) {
      const auto bytes = static_cast<int64_t>(size_of(dtype));
      std::vector<float> values(static_cast<size_t>(count) + 1, -1.0F), back = values;
      for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i % 16);
      std::vector<std::byte> codes(static_cast<size_t>(count * bytes + 2), kGuard);
      encode_row(dtype, values.data(), count, codes.data() + 1);
      EXPECT_EQ(codes.front(), kGuard);
      EXPECT_EQ(codes.back(), kGuard) << name_of(dtype) << " " << count;
      decode_row(dtype, codes.data() + 1, count, back.data());
      EXPECT_EQ(back, values) << name_of(dtype) << " " << count;
    }
}

TEST(RowConvert, RowsThatLieApartAndNothingBetween) {
  constexpr auto kGuard = std::byte{0x5a};
  constexpr int64_t kRows = 3;
  for (const DType dtype : kTypes)
    for (int64_t count = 1; count <= 40; ++count) {
      const auto bytes = static_cast<int64_t>(size_of(dtype));
      const int64_t step = count + 2, pitch = count + 1;
      std::vector<float> values(static_cast<size_t>(kRows * pitch), -1.0F), back = values;
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t i = 0; i < count; ++i)
          values[static_cast<size_t>(r * pitch + i)] = static_cast<float>((i + r) % 16);
      std::vector<std::byte> codes(static_cast<size_t>(kRows * step * bytes + 1), kGuard);
      encode_rows(dtype, values.data(), pitch, kRows, count, codes.data() + 1, step);
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t i = count * bytes; i < step * bytes; ++i)
          EXPECT_EQ(codes[static_cast<size_t>(1 + r * step * bytes + i)], kGuard) << name_of(dtype) << count;
      decode_rows(dtype, codes.data() + 1, step, kRows, count, back.data(), pitch);
      EXPECT_EQ(back, values) << name_of(dtype) << " " << count;
    }
}

TEST(RowConvert, FindsWhatIsNotFiniteAtEveryPlace) {
  for (int64_t count = 0; count <= 150; ++count) {
    std::vector<float> values(static_cast<size_t>(count) + 1, std::numeric_limits<float>::max());
    values.back() = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(all_finite(values.data(), count));
    for (int64_t at = 0; at < count; ++at)
      for (const float wrong :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        const float kept = std::exchange(values[static_cast<size_t>(at)], wrong);
        EXPECT_FALSE(all_finite(values.data(), count)) << at << " of " << count;
        values[static_cast<size_t>(at)] = kept;
      }
  }
}

}  // namespace
}  // namespace retrograd::kernels::cpu
