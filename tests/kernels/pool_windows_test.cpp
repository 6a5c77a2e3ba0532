// SPDX-License-Identifier: Apache-2.0
// Sums of rows and quotients of windows, of every type, stride and unit, against plain loops. Small integers
// and divisors that are powers of two: nothing is rounded.
#include "kernels/cpu/pooling/pool_windows.h"

#include <gtest/gtest.h>

#include <vector>

namespace retrograd::kernels::cpu {
namespace {

constexpr float kUntouched = -99;

std::vector<std::byte> encoded(DType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_f32(type, bytes.data() + i * size_of(type), values[i]);
  return bytes;
}

class PoolWindowsTest : public testing::TestWithParam<DType> {};

TEST_P(PoolWindowsTest, SumsRows) {
  for (int64_t count = 1; count < 150; count += count < 20 ? 1 : 13)
    for (const bool accumulate : {false, true}) {
      const int64_t lines = 2, depths = 2, rows = 3, row = count + 3, depth = 5 * row, line = 2 * row;
      std::vector<float> values(static_cast<size_t>(line + depth + rows * row));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 5) - 2;
      const auto source = encoded(GetParam(), values);
      std::vector<float> sums(static_cast<size_t>(lines * (count + 2)), kUntouched), want = sums;
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
      ASSERT_EQ(sums, want) << count << " places, accumulate " << accumulate;
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
INSTANTIATE_TEST_SUITE_P(Types, PoolWindowsTest, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace retrograd::kernels::cpu
