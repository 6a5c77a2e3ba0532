// SPDX-License-Identifier: Apache-2.0
// Sums of quotients and of windows with channels side by side, against plain loops. Small integers and
// divisors that are powers of two: nothing is rounded. Quotients alone round as a division does.
#include "kernels/cpu/pooling/pool_channels.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "kernels/cpu/pooling/pool_windows.h"
#include "kernels/encoded.h"

namespace retrograd::kernels::cpu::pool_channels_test {
namespace {

constexpr float kUntouched = -99;

class PoolChannelsTest : public testing::TestWithParam<DType> {};

TEST_P(PoolChannelsTest, SumsQuotients) {
  for (const int64_t channels : {1, 3, 8, 17, 70})
    for (const int64_t windows : {1, 2, 5})
      for (const int64_t gap : {0, 3})
        for (int64_t rows = 1; rows <= 3; ++rows)
          for (const bool multiplies : {false, true}) {
            const int64_t place = channels + gap;
            std::vector<PoolQuotientRow> list(static_cast<size_t>(rows));
            std::vector<std::vector<float>> values(static_cast<size_t>(rows));
            std::vector<std::byte> bytes;
            for (int64_t r = 0; r < rows; ++r) {
              auto& row = values[static_cast<size_t>(r)];
              for (int64_t i = 0; i < (windows - 1) * place + channels; ++i)
                row.push_back(static_cast<float>(8 * ((i * 7 + r) % 5) - 16));
              const std::vector<std::byte> more = encoded(GetParam(), row);
              PoolQuotientRow& q = list[static_cast<size_t>(r)];
              q.divisor = r == 1 ? 4.0F : 2.0F;
              ASSERT_TRUE(pool_reciprocal(q.divisor, q.high, q.low));
              q.at = static_cast<int64_t>(bytes.size());
              bytes.insert(bytes.end(), more.begin(), more.end());
            }
            std::vector<float> sums(static_cast<size_t>(windows * channels + 1), kUntouched);
            sum_quotients({.type = GetParam(),
                           .from = bytes.data(),
                           .rows = list.data(),
                           .row_count = rows,
                           .multiplies = multiplies,
                           .windows = windows,
                           .place = place,
                           .channels = channels,
                           .sums = sums.data()});
            for (int64_t j = 0; j < windows; ++j)
              for (int64_t c = 0; c < channels; ++c) {
                float want = 0;
                for (size_t r = 0; r < list.size(); ++r)
                  want += values[r][static_cast<size_t>(j * place + c)] / list[r].divisor;
                ASSERT_EQ(sums[static_cast<size_t>(j * channels + c)], want)
                    << channels << " channels, window " << j << " of " << windows << ", " << rows << " rows";
              }
            EXPECT_EQ(sums.back(), kUntouched);
          }
}

TEST_P(PoolChannelsTest, SpreadsWindows) {
  for (const int64_t channels : {1, 5, 8, 19})
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t kernel = 1; kernel <= 9; kernel += kernel < 5 ? 1 : 2)
        for (int64_t pad = 0; pad <= kernel / 2; ++pad)
          for (const int64_t gap : {0, 2})
            for (int64_t x = 0; x < 3; ++x) {
              const int64_t places = 11, size = x + places + 1, rows = 2, place = channels + gap;
              const int64_t all = (size + 2 * pad - kernel) / stride + 1, row = places * place + 1;
              if (all < 1) continue;
              const auto holds = [&](int64_t j, int64_t at) {
                return j * stride - pad <= at && at < j * stride - pad + kernel;
              };
              int64_t first = all, end = 0;
              for (int64_t j = 0; j < all; ++j)
                for (int64_t at = x; at < x + places; ++at)
                  if (holds(j, at)) first = std::min(first, j), end = j + 1;
              first = std::min(first, end);
              std::vector<float> sums(static_cast<size_t>((end - first) * channels));
              for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i * 5 % 7) - 3;
              std::vector<float> want(static_cast<size_t>(rows * row), kUntouched);
              auto out = encoded(GetParam(), want);
              for (int64_t r = 0; r < rows; ++r)
                for (int64_t i = 0; i < places; ++i)
                  for (int64_t c = 0; c < channels; ++c) {
                    float& sum = want[static_cast<size_t>(r * row + i * place + c)];
                    sum = 0;
                    for (int64_t j = first; j < end; ++j)
                      if (holds(j, x + i)) sum += sums[static_cast<size_t>((j - first) * channels + c)];
                  }
              PoolSpread spread{.sums = sums.data(),
                                .channels = channels,
                                .first = first,
                                .end = end,
                                .x = x,
                                .places = places,
                                .kernel = kernel,
                                .stride = stride,
                                .pad = pad,
                                .type = GetParam(),
                                .out = out.data(),
                                .rows = rows,
                                .row = row,
                                .place = place};
              spread.derive();
              spread_windows(spread);
              const auto expect_wanted = [&](const char* from) {
                for (size_t i = 0; i < want.size(); ++i)
                  ASSERT_EQ(load_as_f32(GetParam(), out.data() + i * size_of(GetParam())), want[i])
                      << channels << " channels, kernel " << kernel << ", stride " << stride << ", pad "
                      << pad << ", from place " << x << ", element " << i << ", of " << from;
              };
              expect_wanted("sums");
              if (kernel > stride) continue;
              // The same numbers as quotients of windows that lie `gap` elements apart.
              std::vector<float> windows(static_cast<size_t>((end - first) * place));
              for (size_t i = 0; i < sums.size(); ++i)
                windows[i / static_cast<size_t>(channels) * static_cast<size_t>(place) +
                        i % static_cast<size_t>(channels)] = 3 * sums[i];
              const auto row_of_windows = encoded(GetParam(), windows);
              out = encoded(GetParam(), std::vector<float>(want.size(), kUntouched));
              spread.out = out.data();
              spread.sums = nullptr;
              spread.row_of_windows = row_of_windows.data();
              spread.window = place;
              spread.quotient.divisor = 3;
              ASSERT_TRUE(pool_reciprocal(3, spread.quotient.high, spread.quotient.low));
              spread_windows(spread);
              expect_wanted("quotients");
            }
}

INSTANTIATE_TEST_SUITE_P(Types, PoolChannelsTest, testing::Values(DType::kF32, DType::kF16, DType::kBF16));

TEST(PoolChannelsQuotientsTest, AreThoseOfADivision) {
  std::mt19937 random(5);
  std::uniform_int_distribution<uint32_t> mantissa(0, 0x7f'ffffu), exponent(127 - 79, 254), sign(0, 1);
  std::vector<float> in{0.0F, -0.0F};
  while (in.size() < 20'003)
    in.push_back(std::bit_cast<float>(sign(random) << 31 | exponent(random) << 23 | mantissa(random)));
  for (const float divisor : {1.0F, 2.0F, 3.0F, -3.0F, 7.0F, 9.0F, 27.0F, 49.0F, 1000.0F, 1048575.0F}) {
    PoolQuotientRow row{.at = 0, .divisor = divisor, .high = 0, .low = 0};
    ASSERT_TRUE(pool_reciprocal(divisor, row.high, row.low));
    std::vector<float> out(in.size());
    const auto count = static_cast<int64_t>(in.size());
    sum_quotients({.from = reinterpret_cast<const std::byte*>(in.data()),
                   .rows = &row,
                   .row_count = 1,
                   .multiplies = true,
                   .windows = 1,
                   .place = count,
                   .channels = count,
                   .sums = out.data()});
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(in[i] / divisor))
          << in[i] << " / " << divisor;
  }
}

}  // namespace
}  // namespace retrograd::kernels::cpu::pool_channels_test
