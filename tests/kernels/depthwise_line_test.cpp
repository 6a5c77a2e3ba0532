// SPDX-License-Identifier: Apache-2.0
// Rows of depthwise convolutions against plain loops: every number of taps and of vectors in a tile, tails.
#include "kernels/cpu/depthwise/depthwise_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace retrograd::kernels::cpu {
namespace {

// Small integers: every sum is exact.
std::vector<float> integers(std::mt19937& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

std::vector<int64_t> some_offsets(std::mt19937& random, int64_t taps) {
  std::vector<int64_t> offsets(static_cast<size_t>(taps));
  for (int64_t& offset : offsets) offset = static_cast<int64_t>(random() % 40);
  return offsets;
}

class DepthwiseLineTest : public testing::TestWithParam<int> {};

TEST_P(DepthwiseLineTest, Gathers) {
  const int64_t taps = GetParam();
  std::mt19937 random(static_cast<uint32_t>(taps));
  for (int64_t count = 1; count < 300; count += count < 20 ? 1 : 13) {
    auto source = integers(random, count + 40);
    const auto weights = integers(random, taps);
    const auto offsets = some_offsets(random, taps);
    // What is read behind the last place must not matter.
    source.resize(source.size() + kMostLineLanes, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> out(static_cast<size_t>(count) + 1, -77.0F);
    depthwise_line({source.data(), count, weights.data(), offsets.data(), taps, 3, out.data()});
    for (int64_t k = 0; k < count; ++k) {
      float expected = 3;  // what the sums begin with
      for (size_t t = 0; t < weights.size(); ++t)
        expected += weights[t] * source[static_cast<size_t>(k + offsets[t])];
      ASSERT_EQ(out[static_cast<size_t>(k)], expected) << count << " places, place " << k;
    }
    ASSERT_EQ(out.back(), -77.0F);
  }
}

TEST_P(DepthwiseLineTest, Dots) {
  const int64_t taps = GetParam();
  std::mt19937 random(static_cast<uint32_t>(100 + taps));
  for (int64_t count = 1; count < 300; count += count < 20 ? 1 : 13) {
    auto x = integers(random, count + 40 + kMostLineLanes);
    const auto y = integers(random, count);
    const auto offsets = some_offsets(random, taps);
    alignas(64) float sums[20 * kMostLineLanes] = {};
    std::vector<float> totals(static_cast<size_t>(taps));
    depthwise_line_dots({x.data(), y.data(), count, offsets.data(), taps, sums});
    depthwise_line_dots({x.data(), y.data(), count, offsets.data(), taps, sums});
    add_line_lanes(sums, taps, totals.data());
    for (size_t t = 0; t < totals.size(); ++t) {
      float expected = 0;
      for (int64_t k = 0; k < count; ++k)
        expected += y[static_cast<size_t>(k)] * x[static_cast<size_t>(k + offsets[t])];
      ASSERT_EQ(totals[t], 2 * expected) << count << " places, tap " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Taps, DepthwiseLineTest, testing::Range(1, 21));

}  // namespace
}  // namespace retrograd::kernels::cpu
