// SPDX-License-Identifier: Apache-2.0
// Products with tile registers against plain loops: on registers in memory everywhere, which shows that
// addresses and shapes are right, and on those of the processor where it has them.
#include "kernels/cpu/dense/bf16_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/dense/bf16_tiles-inl.h"

namespace retrograd::kernels::cpu::bf16_tiles_test {
namespace {

float of_bf16(uint32_t code) { return std::bit_cast<float>(code << 16); }
float cell_of(float low, float high) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(low) >> 16) |
                              (std::bit_cast<uint32_t>(high) & 0xFFFF0000));
}

// Does what the instructions do, with registers that a configuration makes unusable in between.
struct MemoryRegisters {
  static inline TileConfig config;
  static inline std::array<std::array<std::array<float, 16>, 16>, 8> tiles;

  static size_t rows(size_t index) { return config.rows[index]; }
  static size_t cells(size_t index) { return config.row_bytes[index] / sizeof(float); }

  static void configure(const TileConfig& next) {
    config = next;
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(rows(i) == 0, cells(i) == 0) << "register " << i;
    for (auto& tile : tiles)
      for (auto& row : tile) row.fill(1e6F);
  }
  template <int kIndex>
  static void zero() {
    EXPECT_GT(rows(kIndex), 0U);
    for (auto& row : tiles[kIndex]) row.fill(0);
  }
  template <int kIndex>
  static void load(const float* from, int64_t row_bytes) {
    EXPECT_GT(rows(kIndex), 0U);
    for (size_t r = 0; r < rows(kIndex); ++r)
      for (size_t i = 0; i < cells(kIndex); ++i)
        tiles[kIndex][r][i] = from[static_cast<int64_t>(r) * (row_bytes / 4) + static_cast<int64_t>(i)];
  }
  template <int kIndex>
  static void store(float* to, int64_t row_bytes) {
    for (size_t r = 0; r < rows(kIndex); ++r)
      for (size_t i = 0; i < cells(kIndex); ++i)
        to[static_cast<int64_t>(r) * (row_bytes / 4) + static_cast<int64_t>(i)] = tiles[kIndex][r][i];
  }
  template <int kRow, int kColumn>
  static void multiply() {
    constexpr size_t kC = 2 * kRow + kColumn, kA = 4 + kRow, kB = 6 + kColumn;
    ASSERT_EQ(rows(kC), rows(kA));
    ASSERT_EQ(cells(kA), rows(kB));
    ASSERT_EQ(cells(kC), cells(kB));
    for (size_t r = 0; r < rows(kC); ++r)
      for (size_t k = 0; k < rows(kB); ++k)
        for (size_t i = 0; i < cells(kC); ++i) {
          const auto a = std::bit_cast<uint32_t>(tiles[kA][r][k]),
                     b = std::bit_cast<uint32_t>(tiles[kB][k][i]);
          tiles[kC][r][i] += of_bf16(a & 0xFFFF) * of_bf16(b & 0xFFFF) + of_bf16(a >> 16) * of_bf16(b >> 16);
        }
  }
};

struct Case {
  int rows;
  int64_t width, outer;
  bool listed, accumulate;
};

template <class Product>
void expect_product(const Case& c, const Product& product) {
  constexpr int64_t kInner = 3, kBeside = 3;
  const std::array<int64_t, kInner> offsets = {4, 0, 9};
  const std::array<int64_t, kInner> b_offsets = {2 * c.width, 0, 3 * c.width};
  const int64_t a_stride = c.outer + 11, b_outer = 5 * c.width, c_stride = c.width + kBeside;
  const auto number = [](int64_t i) { return static_cast<float>(i * 7 % 13 - 6); };
  std::vector<float> a, b;
  // As many cells as the rows have: the sanitizer sees one that is read behind them.
  for (int64_t i = 0; i < (c.rows - 1) * a_stride + c.outer + 9; ++i)
    a.push_back(cell_of(number(i), number(3 * i + 1)));
  const int64_t b_rows = c.listed ? 5 * (c.outer - 1) + 4 : kInner * c.outer;
  for (int64_t i = 0; i < b_rows * c.width; ++i) b.push_back(cell_of(number(5 * i + 2), number(i + 4)));
  std::vector<float> sums(static_cast<size_t>(c.rows * c_stride), 11), want = sums;
  TileProduct tile;
  tile.set_rows(a.data(), a_stride, c.rows);
  tile.width = c.width;
  tile.offsets = offsets.data();
  tile.b_offsets = c.listed ? b_offsets.data() : nullptr;
  tile.inner = kInner;
  tile.outer = c.outer;
  tile.outer_stride = 1;
  tile.b_outer_stride = b_outer;
  tile.b = b.data();
  tile.c = sums.data();
  tile.c_stride = c_stride;
  tile.accumulate = c.accumulate;
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t v = 0; v < c.width; ++v) {
      float sum = c.accumulate ? 11 : 0;
      for (int64_t o = 0; o < c.outer; ++o)
        for (int64_t j = 0; j < kInner; ++j) {
          const auto at = static_cast<size_t>(j);
          const auto x = std::bit_cast<uint32_t>(a[static_cast<size_t>(a_stride * r + o + offsets[at])]);
          const int64_t row = c.listed ? o * b_outer + b_offsets[at] : (o * kInner + j) * c.width;
          const auto y = std::bit_cast<uint32_t>(b[static_cast<size_t>(row + v)]);
          sum += of_bf16(x & 0xFFFF) * of_bf16(y & 0xFFFF) + of_bf16(x >> 16) * of_bf16(y >> 16);
        }
      want[static_cast<size_t>(r * c_stride + v)] = sum;
    }
  product(tile);
  EXPECT_EQ(sums, want) << c.rows << " rows of " << c.width << " over " << c.outer
                        << (c.listed ? ", listed" : "") << (c.accumulate ? ", accumulated" : "");
}

// Pieces that are one, equal, and not.
template <class Product>
void expect_every_size(const Product& product) {
  for (const int64_t outer : {1, 5, 16, 17, 28, 31, 32, 48, 51})
    for (const bool listed : {false, true})
      for (const bool accumulate : {false, true})
        for (const int64_t width : {32, 16})
          for (int rows = 1; rows <= kTileRegisterRows; ++rows)
            expect_product({rows, width, outer, listed, accumulate}, product);
}

TEST(Bf16TilesTest, EverySizeOnRegistersInMemory) {
  TileShape configured;
  expect_every_size([&](TileProduct tile) {
    const int upper = cut_in_two(tile);
    tile_register_product<MemoryRegisters>(tile, upper, configured);
  });
}

TEST(Bf16TilesTest, EverySizeOnThoseOfTheProcessor) {
  if (!machine_has_bf16_tiles()) GTEST_SKIP() << "this machine has no tile registers, or does not lend them";
  Bf16Tiles registers;
  expect_every_size([&](const TileProduct& tile) { registers.product(tile); });
  expect_every_size([&](const TileProduct& tile) {
    Bf16Tiles others;
    others.product(tile);
  });
}

TEST(Bf16TilesTest, WhatIsNotFiniteReachesItsOwnSumsOnly) {
  if (!machine_has_bf16_tiles()) GTEST_SKIP() << "this machine has no tile registers, or does not lend them";
  constexpr int64_t kRows = 32, kCells = 20;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a(kRows * kCells, cell_of(1, 2)), b(kCells * 32, cell_of(1, 1)), sums(kRows * 32);
  a[5 * kCells + 18] = cell_of(1, infinity);
  b[3 * 32 + 20] = cell_of(std::numeric_limits<float>::quiet_NaN(), 1);
  const int64_t offset = 0;
  TileProduct tile;
  tile.set_rows(a.data(), kCells, kRows);
  tile.width = 32;
  tile.offsets = &offset;
  tile.inner = 1;
  tile.outer = kCells;
  tile.outer_stride = 1;
  tile.b = b.data();
  tile.c = sums.data();
  tile.c_stride = 32;
  Bf16Tiles registers;
  registers.product(tile);
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t v = 0; v < 32; ++v) {
      const float sum = sums[static_cast<size_t>(r * 32 + v)];
      if (v == 20)
        EXPECT_TRUE(std::isnan(sum)) << r;
      else
        EXPECT_EQ(sum, r == 5 ? infinity : 60) << r << ' ' << v;
    }
}

}  // namespace
}  // namespace retrograd::kernels::cpu::bf16_tiles_test
