// SPDX-License-Identifier: Apache-2.0
// Gather products in place, planned without a GPU: where weights are read, which operands come in chunks, how
// sums are cut into parts and what room these need.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/dense/gather_in_place.h"

namespace retrograd::test {
namespace {

using namespace kernels::cuda;

void set_dense(Tensor& tensor, const std::vector<int64_t>& sizes, bool channels_last) {
  const std::vector<size_t> planes{4, 3, 2, 1, 0}, last{1, 4, 3, 2, 0};
  int64_t stride = 1;
  for (const size_t axis : channels_last ? last : planes) {
    tensor.strides[axis] = stride;
    stride *= sizes[axis];
  }
}

// 2 images of 5 x 6 places, 3 x 3 taps, same size out.
Conv conv_of(int64_t groups, int64_t x_channels, int64_t y_channels, DType dtype, bool channels_last) {
  Conv conv{};
  conv.batch = 2;
  conv.groups = groups;
  conv.x_channels = x_channels;
  conv.y_channels = y_channels;
  conv.axes[0] = {1, 1, 1, 1, 1, 0};
  conv.axes[1] = {5, 5, 3, 1, 1, 1};
  conv.axes[2] = {6, 6, 3, 1, 1, 1};
  set_dense(conv.x, {2, groups * x_channels, 1, 5, 6}, channels_last);
  set_dense(conv.y, {2, groups * y_channels, 1, 5, 6}, channels_last);
  set_dense(conv.w, {groups * y_channels, x_channels, 1, 3, 3}, channels_last);
  conv.x.dtype = conv.y.dtype = conv.w.dtype = dtype;
  return conv;
}

TEST(InPlacePlanTest, WeightsAreReadWhereTheyLie) {
  for (const bool last : {false, true})
    for (const bool forward : {false, true}) {
      const Conv conv = conv_of(2, 3, 4, DType::kF32, last);
      const InPlaceWeights w = in_place_weights(conv, forward, Columns::kChannels);
      for (int64_t g = 0; g < 2; ++g)
        for (int64_t o = 0; o < 4; ++o)
          for (int64_t c = 0; c < 3; ++c)
            for (int64_t tap = 0; tap < 9; ++tap)
              EXPECT_EQ(g * w.group + (forward ? c : o) * w.term + (forward ? o : c) * w.column +
                            tap / 3 * w.tap[1] + tap % 3 * w.tap[2],
                        (g * 4 + o) * conv.w.strides[0] + c * conv.w.strides[1] +
                            tap / 3 * conv.w.strides[3] + tap % 3 * conv.w.strides[4]);
      EXPECT_EQ(w.tap[0], 0);
    }
}

TEST(InPlacePlanTest, FoldedColumnsLieSideBySide) {
  const Conv planes = conv_of(1, 3, 4, DType::kF32, false), last = conv_of(1, 3, 4, DType::kF32, true);
  const InPlaceWeights taps_fast = in_place_weights(planes, false, Columns::kFoldedTapsFast);
  const InPlaceWeights channels_fast = in_place_weights(last, false, Columns::kFoldedChannelsFast);
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t tap = 0; tap < 9; ++tap) {
        const auto at = [&](const Conv& conv) {
          return o * conv.w.strides[0] + c * conv.w.strides[1] + tap / 3 * conv.w.strides[3] +
                 tap % 3 * conv.w.strides[4];
        };
        EXPECT_EQ(o * taps_fast.term + (c * 9 + tap) * taps_fast.column, at(planes));
        EXPECT_EQ(o * channels_fast.term + (tap * 3 + c) * channels_fast.column, at(last));
      }
}

TEST(InPlacePlanTest, ChunksNeedWholeRows) {
  const auto form = [](const Conv& conv, bool forward = false) {
    return in_place_form(conv, forward, Columns::kChannels);
  };
  EXPECT_EQ(form(conv_of(1, 16, 8, DType::kF16, true)), InPlaceForm::kRows);
  EXPECT_EQ(form(conv_of(3, 8, 24, DType::kBF16, true)), InPlaceForm::kRows);
  EXPECT_EQ(form(conv_of(1, 4, 4, DType::kF32, true)), InPlaceForm::kRows);
  EXPECT_EQ(form(conv_of(1, 12, 8, DType::kF16, true)), InPlaceForm::kElements);
  EXPECT_EQ(form(conv_of(1, 16, 12, DType::kF16, true)), InPlaceForm::kElements);
  EXPECT_EQ(form(conv_of(1, 16, 8, DType::kF16, false)), InPlaceForm::kElements);
  // In forward the columns of weights are y channels, which lie apart.
  EXPECT_EQ(form(conv_of(1, 16, 8, DType::kF16, true), true), InPlaceForm::kElements);
  Conv gap = conv_of(1, 16, 8, DType::kF16, true);
  gap.y.strides[0] += 8;
  EXPECT_EQ(form(gap), InPlaceForm::kElements);
  Conv askew = conv_of(1, 16, 8, DType::kF16, true);
  askew.w.strides[0] += 4;
  EXPECT_EQ(form(askew), InPlaceForm::kElements);
}

TEST(InPlacePlanTest, PartsAreLongAndHaveRoom) {
  for (const int64_t channels : {8, 72, 512, 2048})
    for (const int64_t residue_count : {1, 4, 20}) {
      GatherProduct product{};
      product.conv = conv_of(1, 40, channels, DType::kF16, true);
      ProductAxes axes{};
      for (size_t a = 0; a < 3; ++a) {
        axes[a].results = product.conv.axes[a].x;
        axes[a].taps = product.conv.axes[a].kernel;
      }
      const std::vector<ProductAxes> residues(static_cast<size_t>(residue_count), axes);
      const InPlaceCut cut = in_place_cut(product, InPlaceForm::kRows, residues);
      const int64_t steps = 9 * ((channels + 63) / 64);
      EXPECT_EQ(cut.n, 64);
      EXPECT_EQ(cut.steps, steps);
      EXPECT_EQ(cut.tiles, residue_count);
      EXPECT_EQ(cut.tile_steps, residue_count * steps);
      EXPECT_GE(cut.parts, 1);
      EXPECT_TRUE(cut.parts == 1 || steps / cut.parts >= 16);
      // As many residues as a launch has.
      const int64_t room = cut.parts * std::min<int64_t>(residue_count, kMostResidues) * 64 * 64;
      EXPECT_EQ(cut.partial_floats, cut.parts > 1 ? room : 0);
      EXPECT_EQ(in_place_cut(product, InPlaceForm::kElements, residues).n, 32);
    }
}

}  // namespace
}  // namespace retrograd::test
