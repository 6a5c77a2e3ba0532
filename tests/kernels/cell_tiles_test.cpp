// SPDX-License-Identifier: Apache-2.0
// Products with tile registers against plain loops: on registers in memory everywhere, which shows that
// addresses and shapes are right, and on those of the processor where it has them.
#include "kernels/cpu/dense/cell_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/dtype.h"
#include "kernels/cpu/dense/cell_tiles-inl.h"

namespace retrograd::kernels::cpu::cell_tiles_test {
namespace {

float number_of(CellType type, uint32_t code) {
  const auto bits = static_cast<uint16_t>(code);
  return type == CellType::kBf16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}
float cell_of(CellType type, float low, float high) {
  const auto code = [&](float number) -> uint32_t {
    return type == CellType::kBf16 ? f32_to_bf16(number) : f32_to_f16(number);
  };
  return std::bit_cast<float>(code(low) | code(high) << 16);
}
float product_of(CellType type, float a, float b) {
  const auto x = std::bit_cast<uint32_t>(a), y = std::bit_cast<uint32_t>(b);
  return number_of(type, x) * number_of(type, y) + number_of(type, x >> 16) * number_of(type, y >> 16);
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
        for (size_t i = 0; i < cells(kC); ++i)
          tiles[kC][r][i] += product_of(CellType::kBf16, tiles[kA][r][k], tiles[kB][k][i]);
  }
};

struct Case {
  int rows;
  int64_t width, outer;
  bool listed, accumulate;
  CellType type;
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
    a.push_back(cell_of(c.type, number(i), number(3 * i + 1)));
  const int64_t b_rows = c.listed ? 5 * (c.outer - 1) + 4 : kInner * c.outer;
  for (int64_t i = 0; i < b_rows * c.width; ++i)
    b.push_back(cell_of(c.type, number(5 * i + 2), number(i + 4)));
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
          const int64_t row = c.listed ? o * b_outer + b_offsets[at] : (o * kInner + j) * c.width;
          sum += product_of(c.type, a[static_cast<size_t>(a_stride * r + o + offsets[at])],
                            b[static_cast<size_t>(row + v)]);
        }
      want[static_cast<size_t>(r * c_stride + v)] = sum;
    }
  product(tile);
  EXPECT_EQ(sums, want) << c.rows << " rows of " << c.width << " over " << c.outer
                        << (c.listed ? ", listed" : "") << (c.accumulate ? ", accumulated" : "");
}

// Pieces that are one, equal, and not.
template <class Product>
void expect_every_size(CellType type, const Product& product) {
  for (const int64_t outer : {1, 5, 16, 17, 28, 31, 32, 48, 51})
    for (const bool listed : {false, true})
      for (const bool accumulate : {false, true})
        for (const int64_t width : {32, 16})
          for (int rows = 1; rows <= kTileRegisterRows; ++rows)
            expect_product({rows, width, outer, listed, accumulate, type}, product);
}

TEST(CellTilesInMemoryTest, EverySize) {
  TileShape configured;
  expect_every_size(CellType::kBf16, [&](TileProduct tile) {
    const int upper = cut_in_two(tile);
    tile_register_product<MemoryRegisters>(tile, upper, configured);
  });
}

class CellTilesTest : public testing::TestWithParam<CellType> {
  void SetUp() override {
    if (!machine_has_tiles(GetParam()))
      GTEST_SKIP() << "this machine has no tile registers of the type, or does not lend them";
  }
};
INSTANTIATE_TEST_SUITE_P(Types, CellTilesTest, testing::Values(CellType::kBf16, CellType::kF16),
                         [](const auto& type) { return type.param == CellType::kBf16 ? "Bf16" : "F16"; });

TEST_P(CellTilesTest, EverySizeOnRegistersOfTheProcessor) {
  CellTiles registers(GetParam());
  expect_every_size(GetParam(), [&](TileProduct tile) { registers.product(tile); });
  expect_every_size(GetParam(), [&](TileProduct tile) {
    CellTiles others(GetParam());
    others.product(tile);
  });
}

// 32 rows, 32 columns and 20 cells.
struct FullProduct {
  static constexpr int64_t kRows = 32, kCells = 20;
  std::vector<float> a, b, sums;
  FullProduct(float of_a, float of_b) : a(kRows * kCells, of_a), b(kCells * 32, of_b), sums(kRows * 32) {}
  void run(CellType type) {
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
    CellTiles(type).product(tile);
  }
};

TEST_P(CellTilesTest, WhatIsNotFiniteReachesItsOwnSumsOnly) {
  const CellType type = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();
  FullProduct p(cell_of(type, 1, 2), cell_of(type, 1, 1));
  p.a[5 * FullProduct::kCells + 18] = cell_of(type, 1, infinity);
  p.b[3 * 32 + 20] = cell_of(type, std::numeric_limits<float>::quiet_NaN(), 1);
  p.run(type);
  for (int64_t r = 0; r < FullProduct::kRows; ++r)
    for (int64_t v = 0; v < 32; ++v) {
      const float sum = p.sums[static_cast<size_t>(r * 32 + v)];
      if (v == 20)
        EXPECT_TRUE(std::isnan(sum)) << r;
      else
        EXPECT_EQ(sum, r == 5 ? infinity : 60) << r << ' ' << v;
    }
}

// Of BF16 the smallest that cells may hold, of FP16 subnormal ones.
TEST_P(CellTilesTest, SmallNumbersAreMultiplied) {
  const CellType type = GetParam();
  const float small = type == CellType::kBf16 ? 0x1p-50F : 0x1p-24F;
  FullProduct p(cell_of(type, small, 3 * small), cell_of(type, small, -2 * small));
  p.run(type);
  for (const float sum : p.sums) EXPECT_EQ(sum, small * small * -100);
}

}  // namespace
}  // namespace retrograd::kernels::cpu::cell_tiles_test
