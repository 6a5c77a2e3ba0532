// SPDX-License-Identifier: Apache-2.0
// Copies and products of each form, added up.
#include "kernels/cuda/dense_weight/weight_way_plan.h"

#include <algorithm>

#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr double kCopyBytes = 3e6, kLaunch = 3;  // of copies: bytes a microsecond, microseconds
// Patches that are many times what they are made of are not worth their memory, unless it is little.
constexpr double kMostGrowth = 3, kLittle = 64 << 20;

double microseconds(const WeightWay& way) {
  double time = way.product;
  for (const double copied : {way.x_copied, way.y_copied})
    if (copied > 0) time += copied / kCopyBytes + kLaunch;
  if (way.patches > 0) time += patch_microseconds(way) + kLaunch;
  return time;
}

double product_of(const Axis (&axes)[3], int64_t Axis::*size) {
  double product = 1;
  for (const Axis& a : axes) product *= static_cast<double>(a.*size);
  return product;
}

}  // namespace

double patch_microseconds(const WeightWay& way) {
  constexpr double kElements = 4.7e5;  // a microsecond
  return way.patches / kElements;
}

WeightWay weight_way(const Conv& conv, ProductMath math, const WeightGpu& gpu, bool x_in_place,
                     bool y_in_place) {
  const int64_t chunk = chunk_elements(math);
  const double element = 16.0 / static_cast<double>(chunk), groups = static_cast<double>(conv.groups),
               batch = static_cast<double>(conv.batch);
  const double x_places = batch * product_of(conv.axes, &Axis::x),
               y_places = static_cast<double>(places_of(conv));
  const double x_rows = x_places * groups * static_cast<double>(filled_to(conv.x_channels, chunk)) * element,
               y_rows = y_places * groups * static_cast<double>(filled_to(conv.y_channels, chunk)) * element,
               patches = y_places * groups * static_cast<double>(patch_row(conv, math)) * element;

  WeightWay best;
  best.choice = weight_choice(conv, math, gpu);
  best.product = best.choice.time;
  best.x_copied = x_in_place ? 0 : 2 * x_rows;
  best.y_copied = y_in_place ? 0 : 2 * y_rows;
  if (taps_of(conv) > 1 && patch_row(conv, math) <= kLongestPatch / conv.groups &&
      patches <= std::max(kMostGrowth * (x_rows + y_rows), kLittle)) {
    WeightWay way;
    way.form = WeightForm::kPatches;
    way.choice = weight_choice(conv_of_patches(conv), math, gpu);
    way.product = way.choice.time;
    way.patches = y_places * groups * static_cast<double>(conv.x_channels * taps_of(conv));
    way.y_copied = best.y_copied;
    if (microseconds(way) < microseconds(best)) best = way;
    if (const Conv planes = conv_of_patch_planes(conv, math); plane_copies(planes, math).takes) {
      way.form = WeightForm::kPatchPlanes;
      way.planes = plane_choice(planes, math, gpu.shared_bytes);
      way.product = way.planes.microseconds;
      way.y_copied = 0;
      if (microseconds(way) < microseconds(best)) best = way;
    }
  }
  if (plane_copies(conv, math).takes) {
    WeightWay way;
    way.form = WeightForm::kPlanes;
    way.planes = plane_choice(conv, math, gpu.shared_bytes);
    way.product = way.planes.microseconds;
    if (microseconds(way) < microseconds(best)) best = way;
  }
  return best;
}

Conv conv_of_patch_planes(const Conv& conv, ProductMath math) {
  Conv planes = conv_of_patches(conv);
  planes.x.dtype = math == ProductMath::kF16    ? DType::kF16
                   : math == ProductMath::kBF16 ? DType::kBF16
                                                : DType::kF32;
  int64_t stride = 1;
  for (const int axis : {4, 3, 2}) {
    planes.x.strides[axis] = stride;
    stride *= planes.axes[axis - 2].x;
  }
  planes.x.strides[1] = stride;
  planes.x.strides[0] = stride * planes.groups * planes.x_channels;
  return planes;
}

Conv without_unread_places(const Conv& conv) {
  Conv less = conv;
  for (int i = 0; i < 3; ++i) {
    Axis& a = less.axes[i];
    if (a.kernel != 1 || a.stride == 1 || a.pad != 0 || (a.y - 1) * a.stride >= a.x) continue;
    if (a.y > 1) less.x.strides[2 + i] *= a.stride;
    a.x = a.y;
    a.stride = 1;
  }
  return less;
}

}  // namespace retrograd::kernels::cuda
