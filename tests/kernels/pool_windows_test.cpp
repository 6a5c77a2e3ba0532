// SPDX-License-Identifier: Apache-2.0
// Sums of rows and quotients of windows, of every type, stride and unit, against plain loops. Small integers
// and divisors that are powers of two: nothing is rounded.
#include "kernels/cpu/pooling/pool_windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/encoded.h"

namespace retrograd::kernels::cpu::pool_windows_test {
namespace {

constexpr float kUntouched = -99;

class PoolWindowsTest : public testing::TestWithParam<DType> {};

TEST_P(PoolWindowsTest, SumsRows) {
  for (int64_t count = 1; count < 150; count += count < 20 ? 1 : 13)
    for (const bool accumulate : {false, true}) {
      // What is behind a line is the next one's, so sums of several lines begin anew.
      const int64_t lines = accumulate ? 1 : 2, depths = 2, rows = 3, row = count + 3, depth = 5 * row,
                    line = 2 * row;
      std::vector<float> values(static_cast<size_t>(line + depth + rows * row));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 5) - 2;
      const auto source = encoded(GetParam(), values);
      std::vector<float> sums(static_cast<size_t>(lines * (count + 2) + kPoolOverrun), kUntouched),
          want = sums;
      for (int64_t l = 0; l < lines; ++l)
        for (int64_t i = 0; i < count; ++i) {
          float& sum = want[static_cast<size_t>(l * (count + 2) + i)];
          if (!accumulate) sum = 0;
          for (int64_t d = 0; d < depths; ++d)
            for (int64_t h = 0; h < rows; ++h)
              sum += values[static_cast<size_t>(l * line + d * depth + h * row + i)];
        }
      sum_pool_rows({.type = GetParam(),
                     .source = source.data(),
                     .lines = lines,
                     .source_line = line,
                     .depths = depths,
                     .depth_stride = depth,
                     .rows = rows,
                     .row_stride = row,
                     .count = count,
                     .accumulate = accumulate,
                     .sums = sums.data(),
                     .sums_line = count + 2});
      for (int64_t l = 0; l < lines; ++l)
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<size_t>(l * (count + 2) + i);
          ASSERT_EQ(sums[at], want[at]) << count << " places, accumulate " << accumulate << ", line " << l;
        }
    }
}

TEST_P(PoolWindowsTest, DividesWindows) {
  for (const int64_t unit : {1, 2, 7, 16, 35})
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t taps = 1; taps <= 4; ++taps)
        for (int64_t count = 1; count < 70; count += count < 20 ? 1 : 13) {
          const int64_t lines = 2, extent = (count - 1) * stride + taps, place = unit == 1 ? 1 : unit + 3;
          const int64_t out_line = count * place + 1;
          std::vector<float> sums(static_cast<size_t>(lines * extent * unit + kPoolOverrun)), divisors;
          for (size_t i = 0; i < sums.size(); ++i) sums[i] = 4 * (static_cast<float>(i * 5 % 7) - 3);
          for (int64_t o = 0; o < count; ++o) divisors.push_back(o % 3 == 0 ? 2.0F : 1.0F);
          std::vector<float> want(static_cast<size_t>(lines * out_line), kUntouched);
          auto out = encoded(GetParam(), want);
          for (int64_t l = 0; l < lines; ++l)
            for (int64_t o = 0; o < count; ++o)
              for (int64_t c = 0; c < unit; ++c) {
                float sum = 0;
                for (int64_t t = 0; t < taps; ++t)
                  sum += sums[static_cast<size_t>((l * extent + o * stride + t) * unit + c)];
                want[static_cast<size_t>(l * out_line + o * place + c)] =
                    sum / (divisors[static_cast<size_t>(o)] * 2);
              }
          divide_windows({.sums = sums.data(),
                          .lines = lines,
                          .sums_line = extent * unit,
                          .unit = unit,
                          .stride = stride,
                          .taps = taps,
                          .count = count,
                          .divisors = divisors.data(),
                          .factor = 2,
                          .type = GetParam(),
                          .out = out.data(),
                          .out_line = out_line,
                          .out_place = place});
          ASSERT_EQ(out, encoded(GetParam(), want))
              << count << " results of " << unit << ", stride " << stride << ", " << taps << " taps";
        }
}
TEST_P(PoolWindowsTest, AveragesPlanes) {
  for (int64_t count = 1; count <= kMostPlaneCount; count += count < 70 ? 1 : 101) {
    const int64_t planes = 3, plane = count + 2, stride = 2;
    std::vector<float> values(static_cast<size_t>(planes * plane));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 5) - 2;
    std::vector<float> want(static_cast<size_t>(planes * stride), kUntouched);
    auto out = encoded(GetParam(), want);
    for (int64_t p = 0; p < planes; ++p) {
      float sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += values[static_cast<size_t>(p * plane + i)];
      want[static_cast<size_t>(p * stride)] = sum / 4;
    }
    const auto source = encoded(GetParam(), values);
    average_planes({.type = GetParam(),
                    .source = source.data(),
                    .planes = planes,
                    .plane = plane,
                    .count = count,
                    .divisor = 4,
                    .out = out.data(),
                    .out_stride = stride});
    ASSERT_EQ(out, encoded(GetParam(), want)) << count << " places";
  }
}

// Zeros in front of each line and behind it; what is behind the last line's may be touched.
TEST_P(PoolWindowsTest, LinesHaveZerosAround) {
  for (int64_t count = 1; count < 40; ++count)
    for (const int64_t before : {0, 1, 20})
      for (const int64_t behind : {0, 1, 33}) {
        const int64_t lines = 3, line = before + count + behind;
        const auto source = encoded(GetParam(), std::vector<float>(static_cast<size_t>(lines * count), 1.0F));
        std::vector<float> sums(static_cast<size_t>(lines * line + kPoolOverrun), kUntouched);
        sum_pool_rows({.type = GetParam(),
                       .source = source.data(),
                       .lines = lines,
                       .source_line = count,
                       .count = count,
                       .sums = sums.data() + before,
                       .sums_line = line,
                       .padded = true,
                       .before = before});
        for (int64_t i = 0; i < lines * line; ++i)
          ASSERT_EQ(sums[static_cast<size_t>(i)], i % line >= before && i % line < before + count ? 1 : 0)
              << count << " places, " << before << " before, " << behind << " behind, " << i;
      }
}

// Products with both parts have the bits of the quotient, of whole numbers and of others.
TEST(PoolReciprocalTest, RoundsAsTheQuotient) {
  for (float divisor : {1.0F, 2.0F, 3.0F, 7.0F, -9.0F, 25.0F, 49.0F, 147.0F, 1000.0F, 1048575.0F}) {
    float high = 0, low = 0;
    ASSERT_TRUE(pool_reciprocal(divisor, high, low));
    for (int i = 1; i < 20000; ++i) {
      const float value = static_cast<float>(i) * 1.2345F;
      ASSERT_EQ(std::fma(value, high, value * low), value / divisor) << value << " / " << divisor;
    }
    EXPECT_EQ(std::fma(HUGE_VALF, high, HUGE_VALF * low), HUGE_VALF / divisor);
  }
  float part = 0;
  EXPECT_FALSE(pool_reciprocal(1048576.0F * 3, part, part));
}
INSTANTIATE_TEST_SUITE_P(Types, PoolWindowsTest, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace retrograd::kernels::cpu::pool_windows_test
