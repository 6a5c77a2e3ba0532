// SPDX-License-Identifier: Apache-2.0
// Checked arithmetic at every side of the 64-bit range, and the divisions that round one way.
#include "base/checked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace retrograd {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(Checked, AddsUpToTheLimitsAndNoFurther) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMin + 1, -1), kMin);
  EXPECT_EQ(checked_add(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_add(kMin, kMax), -1);
}

TEST(Checked, MultipliesUpToTheLimitsAndNoFurther) {
  EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(-(int64_t{1} << 31), int64_t{1} << 32), kMin);
  EXPECT_EQ(checked_mul(-(int64_t{1} << 32), int64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_mul(kMin, 0), 0);
}

TEST(Checked, SubtractsUpToTheLimitsAndNoFurther) {
  EXPECT_EQ((Checked(kMin + 1) - 1).get(), kMin);
  EXPECT_EQ((Checked(kMin) - 1).get(), std::nullopt);
  EXPECT_EQ((Checked(kMax - 1) - -1).get(), kMax);
  EXPECT_EQ((Checked(0) - kMin).get(), std::nullopt);
  EXPECT_EQ((Checked(-1) - kMin).get(), kMax);
}

TEST(Checked, StaysOverflownWhateverFollows) {
  const Checked gone = Checked(kMax) + 1;
  EXPECT_EQ(gone.get(), std::nullopt);
  EXPECT_EQ((gone - 1).get(), std::nullopt);
  EXPECT_EQ((gone * 0).get(), std::nullopt);
  EXPECT_EQ((Checked(5) + gone).get(), std::nullopt);
  EXPECT_EQ((Checked(5) - gone).get(), std::nullopt);
  EXPECT_EQ((Checked(5) * gone).get(), std::nullopt);
}

TEST(Checked, EvaluatesAnExpression) {
  EXPECT_EQ((Checked(224) + 1 + 1 - Checked(2) * (5 - 1) - 1).get(), 217);
  EXPECT_EQ((Checked(224) - Checked(kMax) * 2).get(), std::nullopt);
}

TEST(Division, FloorsAndCeilsForBothSigns) {
  for (int64_t b = 1; b <= 7; ++b) {
    for (int64_t a = -30; a <= 30; ++a) {
      const double quotient = static_cast<double>(a) / static_cast<double>(b);
      EXPECT_EQ(floor_div(a, b), static_cast<int64_t>(std::floor(quotient))) << a << "/" << b;
      EXPECT_EQ(ceil_div(a, b), static_cast<int64_t>(std::ceil(quotient))) << a << "/" << b;
    }
  }
}

TEST(Division, HoldsAtTheLimits) {
  EXPECT_EQ(floor_div(kMin, 1), kMin);
  EXPECT_EQ(ceil_div(kMax, 1), kMax);
  EXPECT_EQ(floor_div(kMin, kMax), -2);
  EXPECT_EQ(ceil_div(kMin, kMax), -1);
  EXPECT_EQ(floor_div(kMax, 2), kMax / 2);
  EXPECT_EQ(ceil_div(kMax, 2), kMax / 2 + 1);
}

}  // namespace
}  // namespace retrograd
