// SPDX-License-Identifier: Apache-2.0
// Vectors in plain C++: products are fused to additions as hardware does it, and lanes are added in AVX2's
// order. That they are AVX2's in all else, portable_bits (tests/engines) sees.
#include "kernels/cpu/eight_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace retrograd::test {
namespace {

namespace eight_lanes = kernels::cpu::eight_lanes;
using D = eight_lanes::ScalableTag<float>;

float fused(float a, float b, float c) {
  const D d;
  return eight_lanes::GetLane(
      eight_lanes::MulAdd(eight_lanes::Set(d, a), eight_lanes::Set(d, b), eight_lanes::Set(d, c)));
}

void expect_fused(float a, float b, float c) {
  const float expected = std::fma(a, b, c), found = fused(a, b, c);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << a << " * " << b << " + " << c;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(expected))
        << std::hexfloat << a << " * " << b << " + " << c << " is " << expected << ", not " << found;
  }
}

TEST(EightLanesTest, RoundSumsOfProductsOnce) {
  std::mt19937_64 random(11);
  const auto bits = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  // Any numbers; and addends near the product, where bits cancel or are lost.
  for (int i = 0; i < 200'000; ++i) {
    const float a = bits(), b = bits(), product = a * b;
    expect_fused(a, b, bits());
    const int shift = static_cast<int>(random() % 60) - 30;
    expect_fused(a, b, std::ldexp(i % 2 == 0 ? product : -product, shift));
    expect_fused(a, b, std::nextafter(-product, i % 3 == 0 ? 0.0F : INFINITY));
    if (HasFailure()) return;
  }
}

TEST(EightLanesTest, RoundHalvesAsTheExactSum) {
  // Halves between two floats that a tiny product decides: rounding to double first would lose it.
  for (const float c : {0x1p0F, 0x1.000002p0F, 0x1.fffffep0F, 0x1p-126F, 0x1p-149F, 0x1p127F})
    for (const float sign : {1.0F, -1.0F})
      for (int exponent = -24; exponent >= -100; --exponent)
        for (const float tail : {1.0F, 0x1.000002p0F, 0x1.fffffep0F}) {
          const int scale = std::ilogb(c);
          expect_fused(std::ldexp(tail, std::clamp(scale + exponent, -149, 127)), sign * 0x1.000002p0F, c);
          expect_fused(std::ldexp(tail, std::clamp(scale + exponent, -149, 127)), sign, -c);
        }
}

TEST(EightLanesTest, KeepWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const float values[] = {0.0F, -0.0F, 1.0F, kInf, -kInf, kMost, -kMost, NAN, 0x1p-149F};
  for (const float a : values)
    for (const float b : values)
      for (const float c : values) expect_fused(a, b, c);
}

template <size_t kLanes>
void expect_nan_found() {
  const eight_lanes::FixedTag<float, kLanes> d;
  const auto nan = eight_lanes::Set(d, NAN), one = eight_lanes::Set(d, 1);
  EXPECT_TRUE(eight_lanes::AllTrue(d, eight_lanes::IsNaN(nan))) << kLanes << " lanes";
  EXPECT_FALSE(eight_lanes::AllTrue(d, eight_lanes::IsNaN(one))) << kLanes << " lanes";
  EXPECT_FALSE(eight_lanes::AllTrue(d, eight_lanes::Eq(nan, nan))) << kLanes << " lanes";
  EXPECT_TRUE(eight_lanes::AllTrue(d, eight_lanes::Ne(nan, nan))) << kLanes << " lanes";
  EXPECT_FALSE(eight_lanes::AllTrue(d, eight_lanes::Lt(nan, one))) << kLanes << " lanes";
}

TEST(EightLanesTest, FindNan) {
  expect_nan_found<1>();
  expect_nan_found<2>();
  expect_nan_found<4>();
  expect_nan_found<8>();
}

TEST(EightLanesTest, AddHalvesOfAVector) {
  const float lanes[] = {0x1p24F, 1, -0x1p24F, 3, 1, 0x1p-1F, 5, 0x1p25F};
  const float t[] = {lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]};
  const D d;
  EXPECT_EQ(eight_lanes::GetLane(eight_lanes::SumOfLanes(d, eight_lanes::LoadU(d, lanes))),
            (t[0] + t[2]) + (t[1] + t[3]));
}

}  // namespace
}  // namespace retrograd::test
