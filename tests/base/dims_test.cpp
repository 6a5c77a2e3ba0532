// SPDX-License-Identifier: Apache-2.0
// Dims: up to eight values in place, compared and printed by their rank only.
#include "base/dims.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace retrograd {
namespace {

TEST(Dims, HoldsNoneToEightValues) {
  Dims grown;
  EXPECT_TRUE(grown.empty());
  for (int i = 0; i < Dims::kMaxRank; ++i) {
    EXPECT_EQ(grown.rank(), i);
    grown.push_back(10 + i);
  }
  EXPECT_EQ(grown, (Dims{10, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_FALSE(grown.empty());
  EXPECT_EQ(std::vector<int64_t>(grown.begin(), grown.end()),
            (std::vector<int64_t>{10, 11, 12, 13, 14, 15, 16, 17}));
}

TEST(Dims, IsBuiltFromASpanOrFilled) {
  const std::vector<int64_t> values{2, -3, 0};
  EXPECT_EQ(Dims(std::span<const int64_t>(values)), (Dims{2, -3, 0}));
  EXPECT_EQ(Dims::filled(3, 1), (Dims{1, 1, 1}));
  EXPECT_EQ(Dims::filled(0, 1), Dims());
}

TEST(Dims, DiffersInAnyValueAndInRank) {
  Dims dims{2, 3};
  EXPECT_NE(dims, (Dims{2, 3, 0}));
  EXPECT_NE(dims, (Dims{2, 4}));
  dims[1] = 4;
  EXPECT_EQ(dims, (Dims{2, 4}));
}

TEST(Dims, PrintsSizesJoinedByX) {
  EXPECT_EQ(to_string(Dims{2, 3, 224, 224}), "2x3x224x224");
  EXPECT_EQ(to_string(Dims{7}), "7");
  EXPECT_EQ(to_string(Dims{-1, 0}), "-1x0");
  EXPECT_EQ(to_string(Dims{std::numeric_limits<int64_t>::min()}), "-9223372036854775808");
  EXPECT_EQ(to_string(Dims{}), "scalar");
}

TEST(Joined, PrintsWhatAPersonReads) {
  const auto numbers = [](size_t count) { return std::vector<int64_t>(count, 5); };
  EXPECT_EQ(joined({}, ", "), "");
  EXPECT_EQ(joined(std::vector<int64_t>{7}, ", "), "7");
  EXPECT_EQ(joined(std::vector<int64_t>{7, -9}, "x"), "7x-9");
  EXPECT_EQ(joined(numbers(16), "x"), "5x5x5x5x5x5x5x5x5x5x5x5x5x5x5x5");
  EXPECT_EQ(joined(numbers(17), "x"), "5x5x5x5x5x5x5x5x5x5x5x5x5x5x5x5x...(17 entries)");
  EXPECT_EQ(joined(numbers(70), ", "), "5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, ...(70 entries)");
}

}  // namespace
}  // namespace retrograd
