// SPDX-License-Identifier: Apache-2.0
// Which operands are read in place, and in what tiles.
#include "kernels/cuda/dense_weight/plane_weight_plan.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace retrograd::kernels::cuda {
namespace {

struct Tile {
  int m, n, at_once;
  double speed, in_f32;
};
constexpr Tile kTiles[] = {{128, 64, 2, 1.0, 1.0},  {64, 128, 2, 1.0, 1.0},  {64, 64, 3, 0.92, 0.92},
                           {32, 64, 4, 0.75, 0.75}, {64, 32, 4, 0.75, 0.75}, {32, 32, 5, 0.6, 0.6},
                           {64, 16, 4, 0.5, 0.5},   {16, 64, 4, 0.5, 0.2}};

// Instructions for 32 times 4 bytes of x under any tap, and for any other copy of a warp. In 16 bits they are
// more beside the products, and so in TF32, whose operands are rounded besides.
constexpr double kGathering = 14, kCopying = 7, kInSixteenBits = 4, kInTf32 = 5, kRounding = 0.66;

// Four stages of 128 bytes and a gap a row, and what columns need to know.
int shared_of(const Tile& tile) { return 4 * (tile.m + tile.n) * (128 + 16) + tile.n * 24; }

// Places side by side, and their planes.
bool is_planes(const Tensor& t, const Conv& conv) {
  const Axis(&a)[3] = conv.axes;
  return (a[2].y == 1 || t.strides[4] == 1) && (a[1].y == 1 || t.strides[3] == a[2].y) &&
         (a[0].y == 1 || t.strides[2] == a[1].y * a[2].y);
}
bool is_pointwise(const Conv& conv) {
  return std::all_of(conv.axes, conv.axes + 3, [](const Axis& a) {
    return a.kernel == 1 && a.pad == 0 && a.x == a.y && (a.stride == 1 || a.y == 1);
  });
}
bool in_steps_of(int64_t elements, const Tensor& t, const Conv& conv) {
  return is_planes(t, conv) && conv.axes[0].y * conv.axes[1].y * conv.axes[2].y % elements == 0 &&
         t.strides[0] % elements == 0 && t.strides[1] % elements == 0;
}
DType dtype_of(ProductMath math) {
  return math == ProductMath::kF16 ? DType::kF16 : math == ProductMath::kBF16 ? DType::kBF16 : DType::kF32;
}

// What more it takes, in instructions, that a warp's 32 places are not side by side: 128 bytes of L1 a cycle.
double copies_apart(const Tensor& t, const Conv& conv, bool is_x) {
  int64_t step = t.strides[0] < 0 ? -t.strides[0] : t.strides[0];
  for (int a = 0; a < 3; ++a)
    if (conv.axes[a].y > 1) {
      step = t.strides[2 + a] * (is_x ? conv.axes[a].stride : 1);
      step = step < 0 ? -step : step;
    }
  return 4 * static_cast<double>(std::clamp<int64_t>(step, 1, 32) - 1);
}

}  // namespace

PlaneCopies plane_copies(const Conv& conv, ProductMath math) {
  const DType dtype = dtype_of(math);
  PlaneCopies copies;
  // TF32 is made of what is read, other roundings need copies.
  const auto rounding = math == ProductMath::kTF32 ? OperandRounding::kHf32Bits10 : OperandRounding::kNone;
  if (conv.x.dtype != dtype || conv.y.dtype != dtype || conv.rounding != rounding) return copies;
  if (conv.y_channels > 1 << 20) return copies;  // tiles along a grid's second axis
  const int64_t element = dtype == DType::kF32 ? 4 : 2;
  const bool pointwise = is_pointwise(conv);
  copies.wide_y = in_steps_of(16 / element, conv.y, conv);
  copies.wide_x = copies.wide_y && pointwise && in_steps_of(16 / element, conv.x, conv);
  if (dtype == DType::kF32) {
    copies.takes = true;
  } else {
    copies.wide_y = copies.wide_x;
    copies.takes =
        pointwise && in_steps_of(4 / element, conv.x, conv) && in_steps_of(4 / element, conv.y, conv);
  }
  return copies;
}

PlaneCopies with_addresses(PlaneCopies copies, const Conv& conv) {
  const auto is_at = [](const void* data, uintptr_t bytes) {
    return reinterpret_cast<uintptr_t>(data) % bytes == 0;
  };
  if ((copies.wide_x && !is_at(conv.x.data, 16)) || (copies.wide_y && !is_at(conv.y.data, 16)))
    copies.wide_x = copies.wide_y = false;
  copies.takes = copies.takes && is_at(conv.x.data, 4) && is_at(conv.y.data, 4);
  return copies;
}

PlaneChoice plane_choice(const Conv& conv, ProductMath math, int64_t shared_bytes) {
  const PlaneCopies copies = plane_copies(conv, math);
  if (!copies.takes) return {};
  const double apart_x = copies_apart(conv.x, conv, true), apart_y = copies_apart(conv.y, conv, false);
  StepTile tiles[std::size(kTiles)];
  std::transform(std::begin(kTiles), std::end(kTiles), tiles, [&](const Tile& t) {
    const double words = math == ProductMath::kF32    ? 1
                         : math == ProductMath::kTF32 ? kInTf32
                                                      : kInSixteenBits;
    const double asking = t.n * (copies.wide_x ? kCopying / 4 : words * kGathering + apart_x) +
                          t.m * (copies.wide_y ? kCopying / 4 : words * kCopying + apart_y);
    const double speed = math == ProductMath::kF32    ? t.in_f32
                         : math == ProductMath::kTF32 ? t.in_f32 * kRounding
                                                      : t.speed;
    return StepTile{t.m, t.n, t.at_once, shared_of(t), step_nanoseconds(t.m, t.n, speed, asking, math)};
  });
  StepWork work;
  work.m = conv.y_channels;
  work.n = taps_of(conv) * conv.x_channels;
  work.groups = conv.groups;
  work.steps = ceil_div(places_of(conv), 8 * chunk_elements(math));
  work.most_parts = 512;
  work.floats = static_cast<double>(conv.groups * conv.y_channels * plane_pitch(conv));
  double read = static_cast<double>(conv.batch * conv.x_channels);
  for (const Axis& a : conv.axes) read *= static_cast<double>(touched_places(a));
  read += static_cast<double>(places_of(conv) * conv.y_channels);
  const int64_t element = 16 / chunk_elements(math);
  work.bytes = read * static_cast<double>(conv.groups * element);
  work.shared_bytes = shared_bytes;
  const WeightChoice best = cheapest_tiles(tiles, work);
  return {copies, best.m, best.n, best.parts, best.time};
}

int64_t plane_weight_floats(const Conv& conv, const PlaneChoice& choice) {
  return choice.parts * conv.groups * conv.y_channels * plane_pitch(conv);
}

}  // namespace retrograd::kernels::cuda
