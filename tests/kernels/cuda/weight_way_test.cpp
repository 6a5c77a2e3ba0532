// SPDX-License-Identifier: Apache-2.0
// How a GPU's grad_weight is cut and in what form it reads its operands: arithmetic, no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "kernels/cuda/dense_weight/weight_way_plan.h"

namespace retrograd::kernels::cuda {
namespace {

struct Layer {
  int64_t batch, groups, x_channels, y_channels;  // a group's
  std::array<Axis, 3> axes;
  DType dtype = DType::kF32;
  bool channels_last = false;
};
Axis axis(int64_t x, int64_t kernel, int64_t stride = 1, int64_t pad = 0, int64_t dilation = 1) {
  return {x, (x + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1, kernel, stride, dilation, pad};
}
const Axis kNone = axis(1, 1);

void lay_out(Tensor& t, int64_t channels, const int64_t (&sizes)[3], bool channels_last) {
  int64_t step = channels_last ? channels : 1;
  for (int a = 2; a >= 0; --a) {
    t.strides[2 + a] = step;
    step *= sizes[a];
  }
  t.strides[1] = channels_last ? 1 : step;
  t.strides[0] = channels_last ? step : step * channels;
}

Conv conv_of(const Layer& layer) {
  Conv conv{};
  conv.batch = layer.batch;
  conv.groups = layer.groups;
  conv.x_channels = layer.x_channels;
  conv.y_channels = layer.y_channels;
  std::copy(layer.axes.begin(), layer.axes.end(), conv.axes);
  conv.x.dtype = conv.y.dtype = conv.w.dtype = layer.dtype;
  const auto& [d, h, w] = layer.axes;
  lay_out(conv.x, layer.groups * layer.x_channels, {d.x, h.x, w.x}, layer.channels_last);
  lay_out(conv.y, layer.groups * layer.y_channels, {d.y, h.y, w.y}, layer.channels_last);
  conv.rounding = OperandRounding::kNone;
  return conv;
}

constexpr ProductMath kMaths[] = {ProductMath::kF16, ProductMath::kBF16, ProductMath::kTF32,
                                  ProductMath::kF32};
constexpr WeightGpu kPlain{false, 163 << 10}, kHopper{true, 227 << 10};

TEST(WeightTiles, FewChannelsGetSmallTiles) {
  const Conv small = conv_of({147, 1, 64, 64, {kNone, kNone, axis(1018, 1)}});
  for (const ProductMath math : kMaths) {
    const WeightChoice choice = weight_choice(small, math, kPlain);
    EXPECT_LE(choice.m * choice.n, 64 * 64);
    EXPECT_GE(choice.parts * (64 / std::min(choice.m, 64)) * (64 / std::min(choice.n, 64)), 100);
  }
  const Conv large = conv_of({32, 1, 512, 512, {kNone, axis(14, 3, 1, 1), axis(14, 3, 1, 1)}});
  EXPECT_GE(weight_choice(large, ProductMath::kF16, kPlain).m, 128);
}

TEST(WeightTiles, FitTheGpu) {
  const Axis side = axis(14, 3, 1, 1);
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const Conv conv = conv_of({32, 1, 512, 512, {kNone, side, side}, dtype});
    const ProductMath math = dtype == DType::kF32 ? ProductMath::kF32 : ProductMath::kF16;
    const WeightChoice most = weight_choice(conv, math, kPlain),
                       less = weight_choice(conv, math, {false, 99 << 10});
    EXPECT_GT((most.m + most.n + 16) * 4 * 128, 99 << 10);
    EXPECT_LE((less.m + less.n + 16) * 4 * 128, 99 << 10);
    EXPECT_GT(less.time, most.time);
    const PlaneChoice planes = plane_choice(conv, math, 99 << 10);
    EXPECT_EQ(planes.copies.takes, dtype == DType::kF32);
    EXPECT_LE((planes.m + planes.n) * 4 * 144, 99 << 10);
  }
}

TEST(WeightTiles, ThereIsAKernelForEveryChoice) {
  const std::set<std::pair<int, int>> rows{{128, 128}, {128, 64}, {64, 128}, {32, 128}, {64, 64},
                                           {32, 64},   {64, 32},  {16, 128}, {32, 32}};
  const std::set<std::pair<int, int>> in_f32{{128, 128}, {128, 64}, {64, 128}, {32, 128},
                                             {64, 64},   {32, 64},  {64, 32}};
  const std::set<std::pair<int, int>> planes{{128, 64}, {64, 128}, {64, 64}, {32, 64},
                                             {64, 32},  {32, 32},  {64, 16}, {16, 64}};
  for (const int64_t y : {1, 8, 17, 40, 100, 130, 500})
    for (const int64_t x : {1, 3, 8, 24, 70, 300})
      for (const int64_t groups : {1, 7})
        for (const int64_t kernel : {1, 3})
          for (const ProductMath math : kMaths) {
            const bool is_f32 = math == ProductMath::kF32 || math == ProductMath::kTF32;
            const DType dtype = is_f32 ? DType::kF32 : math == ProductMath::kF16 ? DType::kF16 : DType::kBF16;
            const Axis side = axis(28, kernel, 1, kernel / 2);
            const Conv conv = conv_of({4, groups, x, y, {kNone, side, side}, dtype});
            const WeightChoice choice = weight_choice(conv, math, kPlain);
            EXPECT_TRUE((is_f32 ? in_f32 : rows).contains({choice.m, choice.n}));
            EXPECT_GE(choice.parts, 1);
            EXPECT_LE(choice.parts * groups, 65535);
            EXPECT_GE(weight_product_floats(conv, math, choice),
                      choice.parts * groups * y * x * kernel * kernel);
            if (!plane_copies(conv, math).takes) continue;
            const PlaneChoice plane = plane_choice(conv, math, kPlain.shared_bytes);
            EXPECT_TRUE(planes.contains({plane.m, plane.n}));
            EXPECT_GE(plane_weight_floats(conv, plane), plane.parts * groups * y * x * kernel * kernel);
          }
}

TEST(WeightTiles, PatchesAreOneTap) {
  const Conv conv = conv_of({2, 3, 5, 16, {axis(6, 2, 2), axis(9, 3, 2, 1), axis(11, 5, 3, 2)}, DType::kF16});
  const Conv patches = conv_of_patches(conv);
  EXPECT_EQ(patches.x_channels, 5 * 2 * 3 * 5);
  EXPECT_EQ(taps_of(patches), 1);
  EXPECT_EQ(places_of(patches), places_of(conv));
  for (int a = 0; a < 3; ++a) EXPECT_EQ(patches.axes[a].x, conv.axes[a].y);
  EXPECT_EQ(patch_row(conv, ProductMath::kF16), 152);
  EXPECT_EQ(patch_row(conv, ProductMath::kF32), 152);
}

TEST(WeightTiles, PatchesAreDensePlanes) {
  const Conv conv = conv_of({2, 3, 5, 16, {axis(6, 2, 2), axis(9, 3, 2, 1), axis(11, 5, 3, 2)}, DType::kF16});
  const Conv planes = conv_of_patch_planes(conv, ProductMath::kF16);
  EXPECT_EQ(planes.x.dtype, DType::kF16);
  int64_t place = 0;
  for (int64_t d = 0; d < conv.axes[0].y; ++d)
    for (int64_t h = 0; h < conv.axes[1].y; ++h)
      for (int64_t w = 0; w < conv.axes[2].y; ++w, ++place)
        EXPECT_EQ(d * planes.x.strides[2] + h * planes.x.strides[3] + w * planes.x.strides[4], place);
  EXPECT_EQ(planes.x.strides[1], place);
  EXPECT_EQ(planes.x.strides[0], 3 * planes.x_channels * place);
  EXPECT_EQ(plane_pitch(planes), plane_pitch(conv));
}

TEST(WeightTiles, BoxesOfWarpgroupsMayBeFilledUp) {
  const Axis side = axis(56, 3, 1, 1);
  for (const int64_t x : {304, 248, 40, 36}) {
    const Conv conv = conv_of({8, 1, x, 304, {kNone, side, side}});
    const WeightChoice choice = weight_choice(conv, ProductMath::kF32, kHopper);
    EXPECT_EQ(choice.m, x > 200 ? 0 : choice.m) << x << " x channels";
    const int64_t columns = 9 * (choice.m == 0 ? f32_weight_columns(conv) : filled_to(x, 4));
    EXPECT_GE(weight_product_floats(conv, ProductMath::kF32, choice), choice.parts * 304 * columns);
  }
  const Conv few = conv_of({8, 1, 24, 304, {kNone, side, side}});
  EXPECT_NE(weight_choice(few, ProductMath::kF32, kHopper).m, 0);
}

// Element offsets of x in the order of places and taps.
std::vector<int64_t> offsets(const Conv& conv) {
  std::vector<int64_t> all;
  for (int a = 0; a < 3; ++a)
    for (int64_t o = 0; o < conv.axes[a].y; ++o)
      for (int64_t t = 0; t < conv.axes[a].kernel; ++t) {
        const Axis& axis = conv.axes[a];
        const int64_t at = o * axis.stride - axis.pad + t * axis.dilation;
        all.push_back(at < 0 || at >= axis.x ? -1 : at * conv.x.strides[2 + a]);
      }
  return all;
}

TEST(WeightWay, UnreadPlacesAreLeftOut) {
  for (const bool channels_last : {false, true}) {
    const Conv conv = conv_of(
        {2, 1, 8, 16, {axis(5, 1, 2), axis(478, 1, 3), axis(9, 3, 2, 1)}, DType::kF32, channels_last});
    const Conv less = without_unread_places(conv);
    EXPECT_EQ(less.axes[0].x, 3);
    EXPECT_EQ(less.axes[1].x, 160);
    EXPECT_EQ(less.axes[2].x, 9);  // taps between the strides
    EXPECT_EQ(offsets(less), offsets(conv));
  }
  const Conv padded = conv_of({2, 1, 8, 16, {kNone, kNone, axis(9, 1, 2, 1)}});
  EXPECT_EQ(without_unread_places(padded).axes[2].x, 9);
  Conv last = conv_of({2, 1, 8, 16, {kNone, kNone, axis(2, 1, 7)}});
  EXPECT_EQ(offsets(without_unread_places(last)), offsets(last));
  last.axes[2].y = 2;  // beyond x, whatever the sizes say
  EXPECT_EQ(without_unread_places(last).axes[2].x, 2);
  EXPECT_EQ(without_unread_places(last).axes[2].stride, 7);
}

TEST(PlaneCopies, SayWhatLiesSideBySide) {
  const auto copies = [](const Layer& layer) {
    const Conv conv = conv_of(layer);
    return plane_copies(conv, layer.dtype == DType::kF16 ? ProductMath::kF16 : ProductMath::kF32);
  };
  const Axis one = axis(14, 1), odd = axis(7, 1), three = axis(14, 3, 1, 1);
  const PlaneCopies pointwise = copies({2, 1, 8, 8, {kNone, one, one}});
  EXPECT_TRUE(pointwise.takes && pointwise.wide_x && pointwise.wide_y);
  const PlaneCopies taps = copies({2, 1, 8, 8, {kNone, three, three}});
  EXPECT_TRUE(taps.takes && !taps.wide_x && taps.wide_y);
  const PlaneCopies narrow = copies({2, 1, 8, 8, {kNone, odd, odd}});
  EXPECT_TRUE(narrow.takes && !narrow.wide_x && !narrow.wide_y);
  // 16 bits: eights, pairs, nothing.
  EXPECT_TRUE(copies({2, 1, 8, 8, {kNone, axis(8, 1), one}, DType::kF16}).wide_x);
  const PlaneCopies pairs = copies({2, 1, 8, 8, {kNone, one, one}, DType::kF16});
  EXPECT_TRUE(pairs.takes && !pairs.wide_x && !pairs.wide_y);
  EXPECT_FALSE(copies({2, 1, 8, 8, {kNone, odd, odd}, DType::kF16}).takes);
  EXPECT_FALSE(copies({2, 1, 8, 8, {kNone, three, three}, DType::kF16}).takes);
  EXPECT_FALSE(copies({2, 1, 8, 8, {kNone, one, one}, DType::kF16, true}).takes);
  Conv rounded = conv_of({2, 1, 8, 8, {kNone, one, one}});
  EXPECT_FALSE(plane_copies(rounded, ProductMath::kTF32).takes);
  rounded.rounding = OperandRounding::kHf32Bits11;
  EXPECT_FALSE(plane_copies(rounded, ProductMath::kF32).takes);
}

TEST(PlaneCopies, FollowAddresses) {
  alignas(16) static std::byte memory[32];
  Conv conv{};
  conv.x.data = conv.y.data = memory;
  const PlaneCopies wide{true, true, true};
  EXPECT_TRUE(with_addresses(wide, conv).wide_x);
  conv.y.data = memory + 4;
  const PlaneCopies narrow = with_addresses(wide, conv);
  EXPECT_TRUE(narrow.takes && !narrow.wide_x && !narrow.wide_y);
  conv.x.data = memory + 2;
  EXPECT_FALSE(with_addresses(wide, conv).takes);
}

TEST(WeightWay, FollowsTheBytes) {
  const auto form = [](const Layer& layer) {
    const Conv conv = conv_of(layer);
    const ProductMath math = layer.dtype == DType::kF16 ? ProductMath::kF16 : ProductMath::kF32;
    const int64_t chunk = chunk_elements(math);
    return weight_way(conv, math, kHopper, layer.channels_last && layer.x_channels % chunk == 0,
                      layer.channels_last && layer.y_channels % chunk == 0)
        .form;
  };
  const Axis patch = axis(80, 16, 16), plane = axis(56, 1), three = axis(56, 3, 1, 1);
  EXPECT_EQ(form({89, 1, 3, 248, {kNone, patch, patch}, DType::kF16, true}), WeightForm::kPatches);
  EXPECT_EQ(form({89, 1, 3, 248, {kNone, patch, patch}}), WeightForm::kPatches);
  EXPECT_EQ(form({32, 1, 64, 64, {kNone, plane, plane}}), WeightForm::kPlanes);
  EXPECT_EQ(form({32, 1, 64, 64, {kNone, plane, plane}, DType::kF32, true}), WeightForm::kRows);
  EXPECT_EQ(form({32, 1, 128, 128, {kNone, three, three}}), WeightForm::kRows);
  // Few channels and taps that planes of many channels meet once.
  const Axis even = axis(92, 3, 1, 1), odd = axis(91, 3, 1, 1);
  EXPECT_EQ(form({16, 1, 8, 328, {kNone, even, even}, DType::kF16}), WeightForm::kPatchPlanes);
  EXPECT_NE(form({16, 1, 8, 328, {kNone, odd, odd}, DType::kF16}), WeightForm::kPatchPlanes);
  // Windows that overlap much are not laid out one by one.
  const Axis far = axis(224, 7, 1, 3);
  EXPECT_NE(form({32, 1, 3, 16, {kNone, far, far}, DType::kF16}), WeightForm::kPatches);
}

}  // namespace
}  // namespace retrograd::kernels::cuda
