// SPDX-License-Identifier: Apache-2.0
// Tiles of every number of rows and every width, against plain loops. Small integers: sums have no rounding.
#include "kernels/cpu/dense/tile_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace retrograd::test {
namespace {

using kernels::cpu::TileProduct;

// The operands of a tile, with rows of b `gap` floats further apart than they are long.
struct Operands {
  Operands(int row_count, int64_t tile_width, int64_t gap)
      : rows(row_count), width(tile_width), b_stride(tile_width + gap) {
    a.resize(static_cast<size_t>(kOuter * kOuterStride + rows * kStride));
    b.resize(static_cast<size_t>(kOuter * kInner * b_stride));
    c.resize(static_cast<size_t>(rows * width + 1));
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 11) - 5;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 13) - 6;
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i % 3);
    for (int64_t j = 0; j < kInner; ++j) b_offsets.push_back(j * b_stride);
  }

  TileProduct tile() {
    TileProduct t;
    t.set_rows(a.data(), kStride, rows);
    t.width = width;
    t.offsets = offsets.data();
    t.inner = kInner;
    t.outer = kOuter;
    t.outer_stride = kOuterStride;
    t.b = b.data();
    t.c = c.data();
    t.c_stride = width;
    return t;
  }

  std::vector<float> expected(bool accumulate) const {
    std::vector<float> sums = c;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < width; ++v) {
        float sum = accumulate ? c[static_cast<size_t>(i * width + v)] : 0;
        for (int64_t o = 0; o < kOuter; ++o)
          for (int64_t j = 0; j < kInner; ++j)
            sum += a[static_cast<size_t>(i * kStride + o * kOuterStride + offsets[static_cast<size_t>(j)])] *
                   b[static_cast<size_t>((o * kInner + j) * b_stride + v)];
        sums[static_cast<size_t>(i * width + v)] = sum;
      }
    return sums;
  }

  static constexpr int64_t kStride = 3, kOuter = 2, kInner = 3, kOuterStride = 20;
  int rows;
  int64_t width, b_stride;
  std::vector<int64_t> offsets{4, 0, 9}, b_offsets;
  std::vector<float> a, b, c;
};

template <class Body>
void for_tiles(const Body& body) {
  for (const int64_t width : kernels::cpu::widest_shape().tile_widths())
    for (int rows = 1; rows <= kernels::cpu::widest_shape().tile_rows(width); ++rows)
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << width << ", accumulate " << accumulate);
        body(rows, width, accumulate);
      }
}

TEST(TileProductTest, RowsOfBInOrder) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    Operands operands(rows, width, 0);
    const auto expected = operands.expected(accumulate);
    TileProduct tile = operands.tile();
    tile.accumulate = accumulate;
    kernels::cpu::tile_product(tile);
    EXPECT_EQ(operands.c, expected);
  });
}

// A row of its own for each row of the tile, the same for all, or one number a row; what accumulates goes on.
TEST(TileProductTest, SumsBeginWithWhatIsGiven) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    for (const int64_t stride : {width + 1, int64_t{0}, int64_t{-1}}) {
      const bool column = stride < 0;
      Operands operands(rows, width, 0);
      auto expected = operands.expected(accumulate);
      std::vector<float> start(static_cast<size_t>(rows * (width + 1)));
      for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i % 17) - 8;
      for (int64_t i = 0; !accumulate && i < rows * width; ++i)
        expected[static_cast<size_t>(i)] +=
            start[static_cast<size_t>(column ? i / width : i / width * stride + i % width)];
      TileProduct tile = operands.tile();
      tile.accumulate = accumulate;
      tile.start = start.data();
      tile.start_stride = stride;
      tile.start_column = column;
      kernels::cpu::tile_product(tile);
      EXPECT_EQ(operands.c, expected) << "stride " << stride;
    }
  });
}

TEST(TileProductTest, NothingIsStoredBesideTheColumns) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    for (int64_t columns = 1; columns <= width; ++columns) {
      Operands operands(rows, width, 0);
      auto expected = operands.expected(accumulate);
      for (int64_t i = 0; i < rows * width; ++i)
        if (i % width >= columns) expected[static_cast<size_t>(i)] = operands.c[static_cast<size_t>(i)];
      TileProduct tile = operands.tile();
      tile.accumulate = accumulate;
      tile.columns = columns;
      kernels::cpu::tile_product(tile);
      EXPECT_EQ(operands.c, expected) << columns << " columns";
    }
  });
}

TEST(TileProductTest, OtherRowsAreFetchedMeanwhile) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    if (width != kernels::cpu::widest_shape().tile_width()) return;
    Operands operands(rows, width, 0);
    const auto expected = operands.expected(accumulate);
    TileProduct tile = operands.tile();
    tile.accumulate = accumulate;
    tile.next = operands.a.data();
    tile.next_stride = 1;
    kernels::cpu::tile_product(tile);
    EXPECT_EQ(operands.c, expected);
  });
}

TEST(TileProductTest, TilesCoverRowsAndChannels) {
  const auto widths = kernels::cpu::widest_shape().tile_widths();
  for (int64_t channels = 1; channels <= 3 * widths[0]; ++channels)
    for (const int64_t narrowest : {int64_t{0}, widths[1]}) {
      int64_t lanes = 0;
      while (lanes < channels) {
        const int64_t width = kernels::cpu::widest_shape().next_tile_width(channels - lanes, narrowest);
        EXPECT_TRUE(width >= narrowest && (channels - lanes < widths[0] || width == widths[0]));
        lanes += width;
      }
      EXPECT_EQ(kernels::cpu::widest_shape().covering_lanes(channels, narrowest), lanes);
      EXPECT_LT(lanes - channels, std::max(narrowest, widths[2]) + (narrowest > 0 ? widths[1] : 0));
    }
  for (const int64_t width : widths)
    for (int64_t rows = 1; rows <= 100; ++rows) {
      const int64_t next = kernels::cpu::widest_shape().next_tile_rows(rows, width, 1);
      EXPECT_TRUE(next >= 1 &&
                  next <= std::min<int64_t>(rows, kernels::cpu::widest_shape().tile_rows(width)));
    }
}

TEST(TileProductTest, ResultsGoPastTheCaches) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    if (width != kernels::cpu::widest_shape().tile_width()) return;
    Operands operands(rows, width, 0);
    const auto expected = operands.expected(accumulate);
    std::vector<float> aligned(operands.c.size() + 32);
    float* c = aligned.data() + (64 - reinterpret_cast<uintptr_t>(aligned.data()) % 64) / sizeof(float);
    std::copy(operands.c.begin(), operands.c.end(), c);
    TileProduct tile = operands.tile();
    tile.accumulate = accumulate;
    tile.c = c;
    tile.stream = true;
    kernels::cpu::tile_product(tile);
    kernels::cpu::end_stream();
    EXPECT_EQ(std::vector<float>(c, c + operands.c.size()), expected);
  });
}

TEST(TileProductTest, RowsOfBFromAList) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    Operands operands(rows, width, 5);
    const auto expected = operands.expected(accumulate);
    TileProduct tile = operands.tile();
    tile.accumulate = accumulate;
    tile.b_offsets = operands.b_offsets.data();
    tile.b_outer_stride = Operands::kInner * operands.b_stride;
    kernels::cpu::tile_product(tile);
    EXPECT_EQ(operands.c, expected);
  });
}

TEST(TileProductTest, RowsOfBAreCopied) {
  for_tiles([](int rows, int64_t width, bool accumulate) {
    if (width != kernels::cpu::widest_shape().tile_width()) return;
    Operands operands(rows, width, 5);
    const auto expected = operands.expected(accumulate);
    const int64_t b_rows = Operands::kOuter * Operands::kInner;
    std::vector<float> copy(static_cast<size_t>(b_rows * width + 1), 99), wanted = copy;
    for (int64_t i = 0; i < b_rows * width; ++i)
      wanted[static_cast<size_t>(i)] =
          operands.b[static_cast<size_t>(i / width * operands.b_stride + i % width)];
    TileProduct tile = operands.tile();
    tile.accumulate = accumulate;
    tile.b_offsets = operands.b_offsets.data();
    tile.b_outer_stride = Operands::kInner * operands.b_stride;
    tile.b_copy = copy.data();
    tile.b_ahead = operands.b_stride;
    kernels::cpu::tile_product(tile);
    EXPECT_EQ(operands.c, expected);
    EXPECT_EQ(copy, wanted);
  });
}

}  // namespace
}  // namespace retrograd::test
