// SPDX-License-Identifier: Apache-2.0
// Percentiles and geometric means.
#include "tools/measure/percentiles.h"

#include <gtest/gtest.h>

#include <sstream>

namespace retrograd::tools {
namespace {

TEST(PercentilesTest, BetweenNeighbours) {
  const std::vector<double> values = {40, 10, 30, 20, 50};
  EXPECT_EQ(percentile(values, 0), 10);
  EXPECT_EQ(percentile(values, 25), 20);
  EXPECT_EQ(percentile(values, 50), 30);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 46);
  EXPECT_EQ(percentile(values, 100), 50);
  EXPECT_EQ(percentile({7}, 99), 7);
}

TEST(PercentilesTest, GeometricMean) {
  EXPECT_DOUBLE_EQ(geometric_mean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(geometric_mean({3}), 3);
}

TEST(PercentilesTest, LineHoldsTheWorst) {
  std::vector<double> values;
  for (int i = 1; i <= 101; ++i) values.push_back(i);
  const auto words = [&](Worst worst) {
    std::istringstream line(percentiles_line("dense", values, worst));
    return std::vector<std::string>(std::istream_iterator<std::string>(line), {});
  };
  const std::vector<std::string> largest = words(Worst::kLargest), smallest = words(Worst::kSmallest);
  ASSERT_EQ(largest.size(), 2 + kPercents.size() + 2);
  EXPECT_EQ(largest[1], "101");
  EXPECT_EQ(largest[2], "2.000");   // one per cent
  EXPECT_EQ(largest[6], "51.0");    // fifty
  EXPECT_EQ(largest[11], "101.0");  // the worst
  EXPECT_EQ(smallest[11], "1.000");
  EXPECT_EQ(percentiles_line("none", {}, Worst::kLargest).find('.'), std::string::npos);
}

}  // namespace
}  // namespace retrograd::tools
