// SPDX-License-Identifier: Apache-2.0
// Every size around the tiles, between guards that must stay as they are.
#include "kernels/cpu/layout/transpose.h"

#include <gtest/gtest.h>

#include <vector>

namespace retrograd::kernels::cpu::transpose_test {
namespace {

constexpr float kGuard = -1;

// `spare` floats lie between the rows on either side, and before and behind all of them.
void expect_turned(int64_t rows, int64_t cols, int64_t spare) {
  const int64_t in_stride = cols + spare, out_stride = rows + spare;
  std::vector<float> in(static_cast<size_t>(rows * in_stride + spare), kGuard);
  std::vector<float> out(static_cast<size_t>(cols * out_stride + spare), kGuard), want = out;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const auto value = static_cast<float>(r * cols + c);
      in[static_cast<size_t>(spare + r * in_stride + c)] = value;
      want[static_cast<size_t>(spare + c * out_stride + r)] = value;
    }
  transpose(in.data() + spare, in_stride, out.data() + spare, out_stride, rows, cols);
  EXPECT_EQ(out, want) << rows << " rows, " << cols << " columns, " << spare << " spare";
}

TEST(Transpose, EverySizeAroundTheTiles) {
  for (int64_t rows = 0; rows <= 35; ++rows)
    for (int64_t cols = 0; cols <= 35; ++cols) expect_turned(rows, cols, 3);
}

TEST(Transpose, LongAndWide) {
  for (const int64_t few : {1, 3, 4, 7, 16, 31})
    for (const int64_t many : {64, 65, 127, 128, 143, 1000})
      for (const int64_t spare : {0, 1, 16}) {
        expect_turned(few, many, spare);
        expect_turned(many, few, spare);
      }
}

}  // namespace
}  // namespace retrograd::kernels::cpu::transpose_test
