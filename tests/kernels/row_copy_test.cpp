// SPDX-License-Identifier: Apache-2.0
// Rows of every length, and of every way to put them together, against plain loops; nothing else is touched.
#include "kernels/cpu/layout/row_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace retrograd::kernels::cpu::row_copy_test {
namespace {

constexpr float kGuard = -1000;

std::vector<float> numbers(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i + 1));
  return values;
}
std::vector<float> guards(int64_t count) { return std::vector<float>(static_cast<size_t>(count), kGuard); }

TEST(RowCopy, CopiesRowsOfEveryLengthAndNothingElse) {
  constexpr int64_t kRows = 3;
  for (int64_t count = 1; count <= 67; ++count)
    for (const int64_t gap : {0, 1, 5, 40}) {
      const int64_t in_stride = count + 2, out_stride = count + gap;
      const std::vector<float> in = numbers(kRows * in_stride);
      std::vector<float> out = guards(kRows * out_stride + 20), apart = out, want = out;
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t x = 0; x < count; ++x)
          want[static_cast<size_t>(r * out_stride + x)] = in[static_cast<size_t>(r * in_stride + x)];
      copy_rows(in.data(), in_stride, out.data(), out_stride, kRows, count);
      EXPECT_EQ(out, want) << count << " floats, gap " << gap;
      for (int64_t r = 0; r + 1 < kRows; ++r)
        for (int64_t x = count; x < out_stride; ++x) want[static_cast<size_t>(r * out_stride + x)] = 0;
      copy_rows_apart(in.data(), in_stride, apart.data(), out_stride, kRows, count, 7);
      EXPECT_EQ(apart, want) << count << " floats, gap " << gap << ", zeros between";
    }
}

void expect_woven(int64_t ways, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 2;
  const int64_t in_stride = end / ways + 1, way_stride = kRows * in_stride + 3, out_stride = end + 4;
  const std::vector<float> in = numbers(ways * way_stride);
  std::vector<float> out = guards(kRows * out_stride), want = out;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t p = begin; p < end; ++p)
      want[static_cast<size_t>(r * out_stride + p)] =
          in[static_cast<size_t>(p % ways * way_stride + r * in_stride + p / ways)];
  weave_rows({.in = in.data(),
              .way_stride = way_stride,
              .ways = ways,
              .in_stride = in_stride,
              .out = out.data(),
              .out_stride = out_stride,
              .rows = kRows,
              .begin = begin,
              .end = end});
  EXPECT_EQ(out, want) << ways << " ways, places " << begin << " to " << end;
}

TEST(RowCopy, WeavesEveryNumberOfWays) {
  for (int64_t ways = 1; ways <= 6; ++ways)
    for (int64_t begin = 0; begin <= 2 * ways; ++begin)
      for (int64_t end = begin + 1; end <= 40 * ways; ++end) expect_woven(ways, begin, end);
  for (const int64_t ways : {8, 16, 17})
    for (const int64_t begin : {int64_t{0}, int64_t{3}, ways})
      for (int64_t end = begin + 1; end <= 20 * ways; end += 3) expect_woven(ways, begin, end);
}

void expect_parted(int64_t ways, int64_t begin, int64_t end, int64_t count) {
  constexpr int64_t kRows = 2;
  const int64_t in_stride = end + 2, out_stride = count + 3, way_stride = kRows * out_stride + 5;
  // Nothing lies behind the last place that is read.
  const std::vector<float> in = numbers((kRows - 1) * in_stride + end);
  std::vector<float> out = guards(ways * way_stride), want = out;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t p = 0; p < ways * count; ++p)
      want[static_cast<size_t>(p % ways * way_stride + r * out_stride + p / ways)] =
          p >= begin && p < end ? in[static_cast<size_t>(r * in_stride + p)] : 0;
  part_rows({.in = in.data(),
             .in_stride = in_stride,
             .out = out.data(),
             .way_stride = way_stride,
             .ways = ways,
             .out_stride = out_stride,
             .rows = kRows,
             .begin = begin,
             .end = end,
             .count = count});
  EXPECT_EQ(out, want) << ways << " ways, places " << begin << " to " << end << " of " << ways * count;
}

TEST(RowCopy, PartsEveryNumberOfWays) {
  for (int64_t ways = 1; ways <= 5; ++ways)
    for (int64_t begin = 0; begin <= 2 * ways; ++begin)
      for (int64_t end = begin; end <= 40 * ways; ++end)
        for (const int64_t more : {0, 1, 3}) expect_parted(ways, begin, end, (end + ways - 1) / ways + more);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::row_copy_test
