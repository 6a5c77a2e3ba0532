// SPDX-License-Identifier: Apache-2.0
// Every number of results, channels and terms, and rows of every length, against plain loops.
#include "kernels/cpu/few_channels/bf16_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu::bf16_rows_test {
namespace {

constexpr int64_t kCells = 16;

class Bf16Rows : public testing::Test {
  void SetUp() override {
    if (!has_bf16_products()) GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  }
};

float number(int64_t i) { return static_cast<float>(i * 7 % 13) - 6; }
uint16_t bf16_of(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }
float half_of(float cell, bool high) {
  const auto bits = std::bit_cast<uint32_t>(cell);
  return std::bit_cast<float>(high ? bits & 0xFFFF0000 : bits << 16);
}

// Rows of numbers that are BF16, `pitch` apart.
std::vector<float> numbers(int64_t rows, int64_t pitch, int64_t first = 0) {
  std::vector<float> out;
  for (int64_t i = 0; i < rows * pitch; ++i) out.push_back(number(i + first));
  return out;
}

TEST_F(Bf16Rows, RowsOfTwoChannelsBecomeCellsInPlace) {
  for (int64_t channels = 1; channels <= 5; ++channels)
    for (int64_t count = 1; count <= 3 * kCells + 1; ++count) {
      const int64_t pitch = count + 1;
      const std::vector<float> in = numbers(channels, pitch);
      std::vector<float> cells = in;
      const CellFacts facts = cells_of_rows(cells.data(), pitch, channels, count, cells.data(), pitch);
      EXPECT_TRUE(facts.large && facts.finite);
      for (int64_t k = 0; k < channels; k += 2)
        for (int64_t i = 0; i < count; ++i) {
          const float cell = cells[static_cast<size_t>(k / 2 * pitch + i)];
          EXPECT_EQ(half_of(cell, false), in[static_cast<size_t>(k * pitch + i)]);
          EXPECT_EQ(half_of(cell, true), k + 1 < channels ? in[static_cast<size_t>((k + 1) * pitch + i)] : 0);
        }
    }
}

TEST_F(Bf16Rows, HalvedNumbersAreSideBySide) {
  for (int64_t count = 1; count <= 5 * kCells; ++count) {
    const std::vector<float> in = numbers(1, count + 1);
    std::vector<float> values = in;
    const CellFacts facts = halve(values.data(), count);
    EXPECT_TRUE(facts.large && facts.finite);
    const auto* halved = reinterpret_cast<const uint16_t*>(values.data());
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(halved[i], bf16_of(in[static_cast<size_t>(i)])) << i << " of " << count;
    EXPECT_EQ(values.back(), in.back());
  }
}

TEST_F(Bf16Rows, WhatPairsWouldLoseIsFound) {
  for (const float odd : {0x1p-51F, -0x1p-130F, std::numeric_limits<float>::infinity(), std::nanf("")})
    for (int64_t at = 0; at < 40; ++at) {
      std::vector<float> rows = numbers(2, 20), values = rows;
      rows[static_cast<size_t>(at)] = values[static_cast<size_t>(at)] = odd;
      const bool finite = std::isfinite(odd);
      const CellFacts cells = cells_of_rows(rows.data(), 20, 2, 20, rows.data(), 20);
      const CellFacts halves = halve(values.data(), 40);
      EXPECT_EQ(cells.large, !finite);
      EXPECT_EQ(cells.finite, finite);
      EXPECT_EQ(halves.large, !finite);
      EXPECT_EQ(halves.finite, finite);
    }
}

void expect_sums(int results, int64_t count, int64_t channels, bool accumulate, bool starts) {
  const std::array<int64_t, 3> offsets = {1, 7, 0};
  const int64_t reach = count + 8 + widest_shape().row_overrun(), row = 3 * results;
  std::vector<float> source = numbers(channels, reach), weights = numbers(channels, row, 3);
  std::vector<float> out(static_cast<size_t>(results * reach), -1000), start = numbers(1, 2 * results, 5);
  std::vector<float> want = out;
  for (int64_t m = 0; m < results; ++m)
    for (int64_t x = 0; x < count; ++x) {
      float& sum = want[static_cast<size_t>(m * reach + x)];
      if (!accumulate) sum = starts ? start[static_cast<size_t>(2 * m)] : 0;
      for (int64_t k = 0; k < channels; ++k)
        for (size_t j = 0; j < 3; ++j)
          sum += source[static_cast<size_t>(k * reach + offsets[j] + x)] *
                 weights[static_cast<size_t>(k * row + m) + j * static_cast<size_t>(results)];
    }
  cells_of_rows(source.data(), reach, channels, reach, source.data(), reach);
  cells_of_rows(weights.data(), row, channels, row, weights.data(), row);
  bf16_row_sums({.source = source.data(),
                 .offsets = offsets.data(),
                 .inner = 3,
                 .outer = (channels + 1) / 2,
                 .outer_stride = reach,
                 .weights = weights.data(),
                 .weight_step = results,
                 .results = results,
                 .out = out.data(),
                 .out_stride = reach,
                 .count = count,
                 .accumulate = accumulate,
                 .start = starts ? start.data() : nullptr,
                 .start_step = 2});
  for (int64_t m = 0; m < results; ++m)
    for (int64_t x = 0; x < count; ++x)
      EXPECT_EQ(out[static_cast<size_t>(m * reach + x)], want[static_cast<size_t>(m * reach + x)])
          << "result " << m << " of " << results << ", x " << x << " of " << count;
}

TEST_F(Bf16Rows, SumsOfEveryNumberOfResultsAndEveryTail) {
  for (int results = 1; results <= widest_shape().row_results(); ++results)
    for (int64_t count = 1; count <= 2 * widest_shape().row_positions(results) + 3; ++count)
      expect_sums(results, count, 1 + count % 4, count % 2 == 0, count % 3 == 0);
}

void expect_dots(int channels, int64_t terms, int64_t rows, int64_t count, bool accumulate) {
  const int64_t y_row = count + 2, y_stride = rows * y_row + 1, source_row = count + 5;
  std::vector<float> y = numbers(1, (channels - 1) * y_stride + (rows - 1) * y_row + count);
  std::vector<float> source = numbers(1, (rows - 1) * source_row + 3 * (terms - 1) + count, 4);
  std::vector<int64_t> offsets;
  for (int64_t t = 0; t < terms; ++t) offsets.push_back(t * 3);
  std::vector<float> room(static_cast<size_t>(channels * terms * kCells + 32), 1);
  float* sums = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) / sizeof(float) & 15U);
  std::vector<float> want, totals(static_cast<size_t>(channels * terms));
  for (int64_t o = 0; o < channels; ++o)
    for (int64_t t = 0; t < terms; ++t) {
      want.push_back(accumulate ? static_cast<float>(kCells) : 0);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t x = 0; x < count; ++x)
          want.back() += y[static_cast<size_t>(o * y_stride + r * y_row + x)] *
                         source[static_cast<size_t>(t * 3 + r * source_row + x)];
    }
  halve(y.data(), static_cast<int64_t>(y.size()));
  halve(source.data(), static_cast<int64_t>(source.size()));
  bf16_row_dots({.y = y.data(),
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
                 .accumulate = accumulate});
  lane_totals(sums, channels * terms, totals.data());
  EXPECT_EQ(totals, want) << channels << " channels, " << terms << " terms, " << rows << " rows of " << count;
  EXPECT_EQ(sums[channels * terms * kCells], 1);
}

TEST_F(Bf16Rows, DotsOfEveryTileAndEveryTail) {
  for (int channels = 1; channels <= vector_shape().dot_channels(); ++channels)
    for (int64_t terms = 1; terms <= 17; ++terms)
      for (int64_t count = 1; count <= 70; count += 3)
        expect_dots(channels, terms, 1 + count % 3, count, count % 2 == 0);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::bf16_rows_test
