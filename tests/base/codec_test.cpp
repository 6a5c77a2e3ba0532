// SPDX-License-Identifier: Apache-2.0
// Rules that every codec keeps: exact decoding, decoding undone by encoding, encoding to the nearest value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codec_cases.h"

namespace retrograd::test {
namespace {

class Codec : public testing::TestWithParam<CodecCase> {
 protected:
  // The first few differences, in hexadecimal; thousands would say no more.
  void expect_nearest(const std::vector<float>& inputs) {
    const SlowEncoder slow(GetParam());
    int failures = 0;
    for (const float input : inputs) {
      const uint32_t code = GetParam().encode(input);
      if (std::isnan(input)) {
        if (std::isnan(GetParam().formula(code))) continue;
        ADD_FAILURE() << std::hex << "NaN 0x" << bits_of(input) << " became 0x" << code;
      } else {
        const uint32_t expected = slow.encode(input);
        if (code == expected) continue;
        ADD_FAILURE() << std::hexfloat << input << std::hex << " (0x" << bits_of(input) << ") became 0x"
                      << code << ", nearest is 0x" << expected;
      }
      if (++failures == 10) break;
    }
  }
};

TEST_P(Codec, DecodesEveryCodeToItsFormula) {
  for (uint32_t code = 0; code < GetParam().code_count(); ++code) {
    const double expected = GetParam().formula(code);
    const float decoded = GetParam().decode(code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(decoded)) << "code " << code;
    } else {
      EXPECT_EQ(static_cast<double>(decoded), expected) << "code " << code;
      EXPECT_EQ(std::signbit(decoded), std::signbit(expected)) << "code " << code;
    }
  }
}

TEST_P(Codec, EncodesEveryDecodedValueToItsCode) {
  for (uint32_t code = 0; code < GetParam().code_count(); ++code) {
    if (std::isnan(GetParam().formula(code))) continue;
    EXPECT_EQ(GetParam().encode(GetParam().decode(code)), code);
  }
}

TEST_P(Codec, KeepsEveryOneOfItsNaNs) {
  int count = 0;
  for (uint32_t code = 0; code < GetParam().code_count(); ++code) {
    if (!std::isnan(GetParam().formula(code))) continue;
    ++count;
    EXPECT_TRUE(std::isnan(GetParam().formula(GetParam().encode(GetParam().decode(code)))))
        << "code " << code;
  }
  EXPECT_GT(count, 0);
}

TEST_P(Codec, EncodesEveryHalfToTheNearestValue) { expect_nearest(every_half()); }

TEST_P(Codec, EncodesTheF32SampleToTheNearestValue) { expect_nearest(f32_sample()); }

TEST_P(Codec, EncodesTheNeighboursOfEveryValueAndMidpointToTheNearestValue) {
  expect_nearest(critical_points(SlowEncoder(GetParam())));
}

TEST_P(Codec, IsReachedThroughItsDType) {
  for (uint32_t code = 0; code < GetParam().code_count(); ++code) {
    // One byte past an aligned address: tensors may start anywhere.
    unsigned char memory[8] = {};
    const uint8_t bytes[2] = {static_cast<uint8_t>(code), static_cast<uint8_t>(code >> 8)};
    std::copy(bytes, bytes + GetParam().bits / 8, memory + 1);
    const float value = load_as_f32(GetParam().dtype, memory + 1);
    EXPECT_EQ(bits_of(value), bits_of(GetParam().decode(code)));

    unsigned char stored[8] = {};
    store_from_f32(GetParam().dtype, stored + 1, value);
    const uint32_t encoded = GetParam().encode(value);
    EXPECT_EQ(stored[0], 0);
    EXPECT_EQ(stored[1], encoded & 0xffu);
    EXPECT_EQ(stored[2], encoded >> 8);
    EXPECT_EQ(stored[3], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Codec, testing::ValuesIn(codec_cases()),
                         [](const auto& codec) { return codec.param.name; });

}  // namespace
}  // namespace retrograd::test
