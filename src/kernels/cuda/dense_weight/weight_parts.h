// SPDX-License-Identifier: Apache-2.0
// The second half of a grad_weight whose pixels were cut into parts: the sum of the parts, in order, to where
// the weights lie.
#pragma once

#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct WeightPlan;

// Which sums that are NaN may owe it to a product that is none of theirs, and are taken from the formula.
enum class WeightRepair : unsigned char { kNone, kEdges, kAll };  // kEdges: of taps that leave x
inline WeightRepair repair_after(ProductMath math, bool padded) {
  if (math == ProductMath::kF32) return WeightRepair::kAll;
  return padded ? WeightRepair::kEdges : WeightRepair::kNone;
}

// Which places a part of the sums of some taps holds: part i those from i · places on, of an order of all
// places with `count` of them along an axis from `first` on, images outside.
struct PartPlaces {
  int first_tap, taps;
  int first[3], count[3];
  int64_t places;
};
inline constexpr int kMostPartPlaces = 9;

struct WeightParts {
  Conv conv;  // w is written
  WeightRepair repair;
  // The columns of a y channel: (tap, x channel), the channels filled up to x_filled; or, taps_inside, (x
  // channel, tap), filled up to x_filled together.
  bool taps_inside;
  int64_t x_filled;  // a multiple of 4
  // [part][group][y channel][column]
  const float* parts;
  int64_t count;
  PartPlaces places[kMostPartPlaces] = {};  // each tap is one of theirs
  int place_orders = 0;
};
// With the places filled in: all of y in their order, `part` of them a part; or as a plan walks over them.
inline WeightParts in_plain_parts(WeightParts parts, int64_t part) {
  const Axis(&a)[3] = parts.conv.axes;
  PartPlaces& all = parts.places[0];
  all = {0, static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel), {}, {}, part};
  for (int i = 0; i < 3; ++i) all.count[i] = static_cast<int>(a[i].y);
  parts.place_orders = 1;
  return parts;
}
WeightParts in_walked_parts(WeightParts parts, const WeightPlan& plan);

void add_weight_parts(const WeightParts& parts, Stream stream);

}  // namespace retrograd::kernels::cuda
