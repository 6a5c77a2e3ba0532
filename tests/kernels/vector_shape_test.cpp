// SPDX-License-Identifier: Apache-2.0
// The rules of VectorShape, written down as the numbers that they come to. CMake runs this once for each
// instruction set; that a kernel's own lanes agree with the rules is asserted beside them, for every one that
// is compiled.
#include "kernels/cpu/vector_shape.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/settings.h"
#include "kernels/cpu/targets.h"

namespace retrograd::kernels::cpu {
namespace {

constexpr VectorShape kAvx512{16, 32, true}, kAvx2{8, 16, true}, kSse{4, 16, false}, kNeon{4, 32, false},
    kNoVectors{1, 16, false};
constexpr VectorShape kAll[] = {kAvx512, kAvx2, kSse, kNeon, kNoVectors};

TEST(VectorShapeTest, OfTheChosenInstructionSet) {
  const std::map<std::string, VectorShape> shapes = {
      {"AVX3_ZEN4", kAvx512}, {"AVX3_DL", kAvx512}, {"AVX3", kAvx512}, {"AVX2", kAvx2},
      {"SSE4", kSse},         {"EMU128", kSse},     {"NEON", kNeon},   {"SCALAR", kNoVectors}};
  const auto shape = shapes.find(target_name());
  ASSERT_NE(shape, shapes.end()) << target_name();
  EXPECT_EQ(vector_shape(), shape->second);
}

TEST(VectorShapeTest, Tiles) {
  EXPECT_EQ(kAvx512.tile_widths(), (std::array<int64_t, 3>{32, 16, 8}));
  EXPECT_EQ(kAvx2.tile_widths(), (std::array<int64_t, 3>{16, 8, 4}));
  EXPECT_EQ(kNeon.tile_widths(), (std::array<int64_t, 3>{8, 4, 2}));
  EXPECT_EQ(kNoVectors.tile_widths(), (std::array<int64_t, 3>{2, 1, 1}));
  EXPECT_EQ(kAvx512.tile_rows(32), 14);
  EXPECT_EQ(kAvx512.tile_rows(32, 1024), 6);  // rows that share a set of L1
  EXPECT_EQ(kAvx512.tile_rows(16), 14);
  EXPECT_EQ(kAvx512.tile_rows(8), 14);
  EXPECT_EQ(kAvx512.tile_rows(16, 1024), 8);
  EXPECT_EQ(kAvx2.tile_rows(8), 8);
  EXPECT_EQ(kAvx2.tile_rows(16), 6);
  EXPECT_EQ(kSse.tile_rows(8), 6);
  EXPECT_EQ(kNeon.tile_rows(8), 14);
  EXPECT_EQ(kNoVectors.tile_rows(2), 6);
  EXPECT_EQ(kAvx512.covering_lanes(17), 24);
  EXPECT_EQ(kAvx512.covering_lanes(17, 16), 32);
  EXPECT_EQ(kAvx512.covering_lanes(25), 32);
  EXPECT_EQ(kAvx2.covering_lanes(9), 12);
}

// Tiles cover the channels, none is wider than it must be, and all have a width that there is.
TEST(VectorShapeTest, TilesCoverAnyChannels) {
  for (const VectorShape& shape : kAll)
    for (const int64_t narrowest : {int64_t{0}, shape.floats})
      for (int64_t channels = 1; channels < 100; ++channels) {
        int64_t lanes = 0;
        while (lanes < channels) {
          const int64_t width = shape.next_tile_width(channels - lanes, narrowest);
          const auto widths = shape.tile_widths();
          ASSERT_NE(std::find(widths.begin(), widths.end(), width), widths.end());
          ASSERT_GE(width, narrowest);
          lanes += width;
        }
        EXPECT_EQ(shape.covering_lanes(channels, narrowest), lanes);
        EXPECT_LT(lanes - channels, std::max(narrowest, shape.tile_widths()[2]));
      }
}

TEST(VectorShapeTest, SumsInRegisters) {
  EXPECT_EQ(kAvx512.row_results(), 12);
  EXPECT_EQ(kAvx2.row_results(), 6);
  EXPECT_EQ(kAvx512.row_positions(1), 8 * 16);
  EXPECT_EQ(kAvx512.row_positions(12), 2 * 16);
  EXPECT_EQ(kAvx2.row_positions(6), 2 * 8);
  EXPECT_EQ(kAvx512.dot_channels(), 8);
  EXPECT_EQ(kAvx2.dot_channels(), 4);
  EXPECT_EQ(kAvx512.dot_terms(8), 3);
  EXPECT_EQ(kAvx2.dot_terms(4), 3);
  for (const VectorShape& shape : kAll) {
    for (int n = 1; n <= shape.row_results(); ++n) EXPECT_LE(n * shape.row_vectors(n), shape.sums());
    for (int n = 1; n <= shape.dot_channels(); ++n) EXPECT_LE(n * shape.dot_terms(n), shape.sums());
    EXPECT_LT(shape.sums(), shape.registers);
  }
}

TEST(VectorShapeTest, LanesAlongRows) {
  EXPECT_EQ(kAvx512.wide_lanes(8), 8);
  EXPECT_EQ(kAvx512.wide_lanes(9), 16);
  EXPECT_EQ(kAvx2.wide_lanes(9), 8);
  EXPECT_EQ(kNeon.wide_lanes(9), 0);
  EXPECT_EQ(kAvx512.wide_planes(8, 3), 2);
  EXPECT_EQ(kAvx512.wide_planes(8, 4), 1);
  EXPECT_EQ(kAvx512.wide_planes(16, 3), 1);
  EXPECT_EQ(kAvx2.wide_planes(8, 3), 1);
  EXPECT_EQ(kAvx512.pool_lanes(), 16);
  EXPECT_EQ(kAvx2.pool_lanes(), 8);
  EXPECT_EQ(kNeon.pool_lanes(), 4);
  EXPECT_TRUE(kAvx2.fuses_pooling());
  EXPECT_FALSE(kSse.fuses_pooling());
}

}  // namespace
}  // namespace retrograd::kernels::cpu
