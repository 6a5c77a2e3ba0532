// SPDX-License-Identifier: Apache-2.0
// Which places the parts of a grad_weight hold: every live term of every tap in exactly one part.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/dense_weight/wgmma_weight.h"
#include "kernels/cuda/part_rows.h"

namespace retrograd::kernels::cuda::weight_parts_plan_test {
namespace {

Axis axis(int64_t x, int64_t kernel, int64_t stride, int64_t pad) {
  return {x, (x + 2 * pad - kernel) / stride + 1, kernel, stride, 1, pad};
}

Conv conv_of(int64_t batch, int64_t channels, const std::array<Axis, 3>& axes) {
  Conv conv{};
  conv.batch = batch;
  conv.groups = 1;
  conv.x_channels = conv.y_channels = channels;
  std::copy(axes.begin(), axes.end(), conv.axes);
  return conv;
}

bool is_live(const Axis& a, int64_t output, int64_t tap) {
  const int64_t position = output * a.stride - a.pad + tap * a.dilation;
  return output >= 0 && output < a.y && position >= 0 && position < a.x;
}

// How often the parts hold each live term of a tap, against once.
void expect_all_places_once(const WeightParts& parts) {
  const Conv& conv = parts.conv;
  const auto& [d, h, w] = conv.axes;
  for (int64_t tap = 0; tap < d.kernel * h.kernel * w.kernel; ++tap) {
    const auto* const order =
        std::find_if(parts.places, parts.places + parts.place_orders,
                     [&](const PartPlaces& o) { return tap >= o.first_tap && tap < o.first_tap + o.taps; });
    ASSERT_NE(order, parts.places + parts.place_orders) << tap;
    const int64_t counts[3] = {order->count[0], order->count[1], order->count[2]};
    const int64_t all = conv.batch * counts[0] * counts[1] * counts[2];
    const auto taps = std::array{tap / (h.kernel * w.kernel), tap / w.kernel % h.kernel, tap % w.kernel};
    int64_t live = 0, expected = conv.batch;
    for (int64_t i = 0; i < std::min(all, parts.count * order->places); ++i)
      live += is_live(w, order->first[2] + i % counts[2], taps[2]) &&
              is_live(h, order->first[1] + i / counts[2] % counts[1], taps[1]) &&
              is_live(d, order->first[0] + i / counts[2] / counts[1] % counts[0], taps[0]);
    for (int a = 0; a < 3; ++a) {
      int64_t of_axis = 0;
      for (int64_t o = 0; o < conv.axes[a].y; ++o) of_axis += is_live(conv.axes[a], o, taps[a]);
      expected *= of_axis;
    }
    EXPECT_EQ(live, expected) << tap;
  }
}

TEST(WeightPartsPlanTest, PlainPartsHoldAllPlaces) {
  WeightParts parts{};
  parts.conv = conv_of(3, 8, {axis(1, 1, 1, 0), axis(9, 3, 2, 1), axis(12, 5, 1, 2)});
  parts.count = 4;
  expect_all_places_once(in_plain_parts(parts, 64));
}

TEST(WeightPartsPlanTest, WalkedPartsHoldAllPlaces) {
  const Axis none = axis(1, 1, 1, 0);
  const std::vector<Conv> convs = {conv_of(4, 64, {none, axis(14, 3, 1, 1), axis(14, 3, 1, 1)}),
                                   conv_of(2, 256, {none, axis(28, 3, 2, 1), axis(28, 3, 2, 1)}),
                                   conv_of(2, 128, {axis(6, 3, 1, 1), axis(8, 3, 1, 1), axis(8, 3, 1, 1)}),
                                   conv_of(8, 512, {none, axis(7, 1, 1, 0), axis(7, 1, 1, 0)}),
                                   conv_of(2, 64, {none, axis(20, 5, 1, 2), axis(20, 3, 1, 1)}),
                                   conv_of(2, 32, {axis(6, 3, 1, 1), axis(9, 3, 1, 1), axis(8, 3, 1, 1)}),
                                   conv_of(1, 16, {axis(5, 3, 1, 0), axis(7, 3, 1, 2), axis(6, 3, 1, 0)})};
  for (const Conv& conv : convs) {
    WeightPlan plan;
    ASSERT_TRUE(plan_wgmma_weight(conv, WeightResults::kParts, &plan));
    WeightParts parts{};
    parts.conv = conv;
    parts.count = plan.parts;
    expect_all_places_once(in_walked_parts(parts, plan));
  }
}

// Patches are walked over as one tap, and its parts are those of all taps of the windows.
TEST(WeightPartsPlanTest, WalkedPartsOfPatchesAreOfAllTaps) {
  WeightParts parts{};
  parts.conv = conv_of(4, 64, {axis(1, 1, 1, 0), axis(28, 3, 2, 1), axis(28, 5, 2, 2)});
  parts.conv.x_channels = 7;
  parts.taps_inside = true;
  WeightPlan plan;
  EXPECT_FALSE(plan_wgmma_weight(parts.conv, WeightResults::kParts, &plan));
  ASSERT_TRUE(plan_wgmma_weight(conv_of_patches(parts.conv), WeightResults::kParts, &plan));
  EXPECT_EQ(plan.walk.x_channels, 7 * 15 + 7);
  parts.count = plan.parts;
  parts = in_walked_parts(parts, plan);
  ASSERT_EQ(parts.place_orders, 1);
  EXPECT_EQ(parts.places[0].taps, 15);
  EXPECT_EQ(parts.places[0].count[1] * parts.places[0].count[2], 14 * 14);
  EXPECT_GE(parts.places[0].places * parts.count, 4 * 14 * 14);
}

TEST(WeightPartsPlanTest, RowsOfPartsFollowOneAnother) {
  const PartRows bands{3, 4, 8, 1, 29};  // an image: 8 + 8 + 8 + 5 rows
  EXPECT_EQ(bands.first_row(0), 0);
  EXPECT_EQ(bands.first_row(1), 24);
  EXPECT_EQ(bands.first_row(2), 29 + 16);
  EXPECT_EQ(bands.first_row(4), 3 * 29);
  EXPECT_EQ(PartRows::of_images(5, 7).first_row(2), 70);
}

}  // namespace
}  // namespace retrograd::kernels::cuda::weight_parts_plan_test
