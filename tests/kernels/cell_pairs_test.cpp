// SPDX-License-Identifier: Apache-2.0
// Cells of every length, what is too small for them, and tiles of every size, against plain loops.
#include "kernels/cpu/dense/cell_pairs.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/cpu/dense/cell_tiles.h"

namespace retrograd::kernels::cpu {
namespace {

class Bf16Pairs : public testing::Test {
  void SetUp() override {
    if (!has_bf16_products() && !has_tiles(CellType::kBf16))
      GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  }
};

uint16_t bf16_of(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }
uint16_t rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float of_bf16(uint32_t code) { return std::bit_cast<float>(code << 16); }
float cell_of(float low, float high) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16_of(low)) | static_cast<uint32_t>(bf16_of(high))
                                                                        << 16);
}

// Rows of `count` pairs with a number between one row and the next, in memory and in `out`.
void expect_pairs(int64_t rows, int64_t count, bool has_low, bool has_high) {
  const int64_t step = count + 1, pitch = count + 1;
  std::vector<std::byte> low(static_cast<size_t>(2 * (rows * step - 1) + 1)), high = low;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t codes[] = {bf16_of(static_cast<float>(i + r + 1)), bf16_of(static_cast<float>(-i - r))};
      std::memcpy(low.data() + 1 + 2 * (r * step + i), &codes[0], 2);
      std::memcpy(high.data() + 1 + 2 * (r * step + i), &codes[1], 2);
    }
  std::vector<float> out(static_cast<size_t>(rows * pitch), 0.5F);
  const CellFacts facts = pair_rows({.low = has_low ? low.data() + 1 : nullptr,
                                     .high = has_high ? high.data() + 1 : nullptr,
                                     .step = step,
                                     .rows = rows,
                                     .count = count,
                                     .out = out.data(),
                                     .pitch = pitch});
  EXPECT_TRUE(facts.large && facts.finite);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count; ++i) {
      const auto cell = std::bit_cast<uint32_t>(out[static_cast<size_t>(r * pitch + i)]);
      EXPECT_EQ(of_bf16(cell & 0xFFFF), has_low ? static_cast<float>(i + r + 1) : 0) << i << " of " << count;
      EXPECT_EQ(of_bf16(cell >> 16), has_high ? static_cast<float>(-i - r) : 0) << i << " of " << count;
    }
    EXPECT_EQ(out[static_cast<size_t>(r * pitch + count)], 0.5F);
  }
}

TEST_F(Bf16Pairs, RowsOfEveryLengthAtOddAddressesAndNothingBeside) {
  for (int64_t count = 0; count < 70; ++count)
    for (const int64_t rows : {1, 3}) {
      expect_pairs(rows, count, true, true);
      expect_pairs(rows, count, true, false);
      expect_pairs(rows, count, false, true);
    }
}

TEST_F(Bf16Pairs, FindsWhatIsTooSmallOrNotFiniteAtEveryPlace) {
  struct Case {
    uint16_t code;
    bool large, finite;
    CellType type = CellType::kBf16;
  };
  constexpr CellType kF16 = CellType::kF16;
  for (const Case& c :
       {Case{0x0000, true, true}, Case{0x8000, true, true}, Case{0x0001, false, true},
        Case{0x807F, false, true}, Case{0x0080, false, true}, Case{(77 << 7) - 1, false, true},
        Case{77 << 7, true, true}, Case{0x8000 | (77 << 7), true, true}, Case{0x7F7F, true, true},
        Case{0x7F80, true, false}, Case{0xFF80, true, false}, Case{0x7FC1, true, false},
        Case{0x0001, true, true, kF16}, Case{0x83FF, true, true, kF16}, Case{0x7BFF, true, true, kF16},
        Case{0x7C00, true, false, kF16}, Case{0xFC00, true, false, kF16}, Case{0x7E01, true, false, kF16}})
    for (size_t place = 0; place < 2 * 37; ++place) {
      std::array<uint16_t, 2 * 37> numbers;
      numbers.fill(bf16_of(3));
      numbers[place] = c.code;
      std::array<float, 37> cells, paired;
      const auto expect = [&](const CellFacts& facts) {
        EXPECT_EQ(facts.large, c.large) << c.code << " at " << place;
        EXPECT_EQ(facts.finite, c.finite) << c.code << " at " << place;
      };
      std::memcpy(cells.data(), numbers.data(), sizeof(cells));
      expect(judge_cells(cells.data(), 0, 1, 37, c.type));
      const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
      expect(pair_rows({.low = bytes,
                        .high = bytes + sizeof(numbers) / 2,
                        .count = 37,
                        .out = paired.data(),
                        .type = c.type}));
    }
}

void expect_product(int rows, int64_t width, bool listed, bool accumulate) {
  constexpr int64_t kInner = 3, kOuter = 2;
  const std::array<int64_t, kInner> offsets = {4, 0, 9};
  const std::array<int64_t, kInner> b_offsets = {2 * width, 0, 3 * width};
  const int64_t b_outer = 4 * width;
  const auto number = [](int64_t i) { return static_cast<float>(i * 7 % 13 - 6); };
  std::vector<float> a, b;
  for (int64_t i = 0; i < 64 * rows; ++i) a.push_back(cell_of(number(i), number(3 * i + 1)));
  for (int64_t i = 0; i < kOuter * b_outer; ++i) b.push_back(cell_of(number(5 * i + 2), number(i + 4)));
  std::vector<float> c(static_cast<size_t>(rows * (width + 3)), 11), want = c;
  TileProduct tile;
  tile.set_rows(a.data(), 64, rows);
  tile.width = width;
  tile.offsets = offsets.data();
  tile.b_offsets = listed ? b_offsets.data() : nullptr;
  tile.inner = kInner;
  tile.outer = kOuter;
  tile.outer_stride = 17;
  tile.b_outer_stride = b_outer;
  tile.b = b.data();
  tile.c = c.data();
  tile.c_stride = width + 3;
  tile.accumulate = accumulate;
  for (int r = 0; r < rows; ++r)
    for (int64_t v = 0; v < width; ++v) {
      float sum = accumulate ? 11 : 0;
      for (int64_t o = 0; o < kOuter; ++o)
        for (int64_t j = 0; j < kInner; ++j) {
          const auto at = static_cast<size_t>(j);
          const auto x = std::bit_cast<uint32_t>(a[static_cast<size_t>(64 * r + o * 17 + offsets[at])]);
          const int64_t row = listed ? o * b_outer + b_offsets[at] : (o * kInner + j) * width;
          const auto y = std::bit_cast<uint32_t>(b[static_cast<size_t>(row + v)]);
          sum += of_bf16(x & 0xFFFF) * of_bf16(y & 0xFFFF) + of_bf16(x >> 16) * of_bf16(y >> 16);
        }
      want[static_cast<size_t>(r * (width + 3) + v)] = sum;
    }
  // As BF16 the sums go elsewhere, and nothing beside them.
  const std::vector<float> before = c;
  for (int64_t columns = width / 2 + 1; columns <= width; ++columns) {
    std::vector<uint16_t> rounded(static_cast<size_t>(rows * (width + 3)), 7), codes = rounded;
    for (int64_t i = 0; i < rows * (width + 3); ++i)
      if (i % (width + 3) < columns)
        codes[static_cast<size_t>(i)] = rounded_to_bf16(want[static_cast<size_t>(i)]);
    tile.rounded = rounded.data();
    tile.rounded_stride = width + 3;
    tile.columns = columns;
    bf16_tile_product(tile);
    EXPECT_EQ(rounded, codes) << rows << " rows of " << columns << " of " << width;
    EXPECT_EQ(c, before);
  }
  tile.rounded = nullptr;
  bf16_tile_product(tile);
  EXPECT_EQ(c, want) << rows << " rows of " << width << (listed ? ", listed" : "");
}

TEST_F(Bf16Pairs, TilesOfEverySize) {
  for (const bool listed : {false, true})
    for (const bool accumulate : {false, true})
      for (const int64_t width : {widest_shape().tile_widths()[0], widest_shape().tile_widths()[1]})
        for (int rows = 1; rows <= widest_shape().tile_rows(width); ++rows)
          expect_product(rows, width, listed, accumulate);
}

}  // namespace
}  // namespace retrograd::kernels::cpu
