// SPDX-License-Identifier: Apache-2.0
// Every number of channels and terms, and rows that end within a vector, against plain loops.
#include "kernels/cpu/few_channels/row_dots.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu::row_dots_test {
namespace {

constexpr float kGuard = -1000;

// The first 64-byte boundary within `room`.
float* aligned(std::vector<float>& room) {
  return room.data() + (-reinterpret_cast<uintptr_t>(room.data()) / sizeof(float) & 15U);
}

void expect_dots(int channels, int64_t terms, int64_t rows, int64_t count, bool accumulate) {
  const int64_t lanes = vector_shape().dot_lanes(), y_row = count + 2, y_stride = rows * y_row + 1;
  const int64_t source_row = count + 5, reach = rows * source_row + 3 * terms + lanes;
  // Nothing of y beyond the last row may be read: under a sanitizer this would show.
  std::vector<float> y(static_cast<size_t>((channels - 1) * y_stride + (rows - 1) * y_row + count));
  std::vector<float> source(static_cast<size_t>(reach));
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i * 5 % 11) - 5;
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i * 7 % 13) - 6;
  std::vector<int64_t> offsets;
  for (int64_t t = 0; t < terms; ++t) offsets.push_back(t * 3);
  std::vector<float> room(static_cast<size_t>(channels * terms * lanes + 32), kGuard);
  float* sums = aligned(room);
  row_dots({.y = y.data(),
            .y_stride = y_stride,
            .y_row = y_row,
            .channels = channels,
            .source = source.data(),
            .source_row = source_row,
            .offsets = offsets.data(),
            .terms = terms,
            .rows = rows,
            .count = count,
            .sums = sums,
            .accumulate = accumulate,
            .next = count % 4 < 2 ? 0 : channels * y_stride});
  std::vector<float> totals(static_cast<size_t>(channels * terms));
  lane_totals(sums, channels * terms, totals.data());
  for (int64_t o = 0; o < channels; ++o)
    for (int64_t t = 0; t < terms; ++t) {
      float want = accumulate ? kGuard * static_cast<float>(lanes) : 0;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t x = 0; x < count; ++x)
          want += y[static_cast<size_t>(o * y_stride + r * y_row + x)] *
                  source[static_cast<size_t>(t * 3 + r * source_row + x)];
      EXPECT_EQ(totals[static_cast<size_t>(o * terms + t)], want)
          << "channel " << o << " of " << channels << ", term " << t << " of " << terms << ", " << rows
          << " rows of " << count;
    }
  EXPECT_EQ(sums[channels * terms * lanes], kGuard);
}

TEST(RowDots, EveryTileAndEveryTail) {
  for (int channels = 1; channels <= vector_shape().dot_channels(); ++channels)
    for (int64_t terms = 1; terms <= 17; ++terms)
      for (int64_t count = 1; count <= 2 * vector_shape().dot_lanes() + 1; ++count)
        expect_dots(channels, terms, 1 + count % 3, count, count % 2 == 0);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::row_dots_test
