// SPDX-License-Identifier: Apache-2.0
// Which pixels the parts of a grad_weight hold.
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/wgmma_weight.h"

namespace retrograd::kernels::cuda {

WeightParts in_plain_parts(WeightParts parts, int64_t part) {
  const Axis(&a)[3] = parts.conv.axes;
  PartPlaces& all = parts.places[0];
  all = {0, static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel), {}, {}, part};
  for (int i = 0; i < 3; ++i) all.count[i] = static_cast<int>(a[i].y);
  parts.place_orders = 1;
  return parts;
}

WeightParts in_walked_parts(WeightParts parts, const WeightPlan& plan) {
  const WeightWalk& walk = plan.walk;
  const Axis(&axes)[3] = parts.conv.axes;
  parts.place_orders = 0;
  if (plan.cut == WeightCut::kPairs) {  // what lies a line or a plane back, as weight_pairs.cu has it
    const WeightUnit& unit = walk.units[0];
    for (int row = 0; row < 9; ++row) {
      const int kd = row / 3, kh = row % 3;
      PartPlaces& places = parts.places[parts.place_orders++];
      places = {
          row * 3, 3, {kh == 2 && kd == 1 ? -1 : 0, kh == 1 ? -1 : 0, 0}, {}, int64_t{unit.part_steps} * 64};
      for (int a = 0; a < 3; ++a) places.count[a] = static_cast<int>(unit.counts[a].divisor);
    }
    return parts;
  }
  const int taps_of_row = plan.cut == WeightCut::k128x64 ? 1 : walk.kernel[2];
  for (int i = 0; i < walk.unit_count; ++i) {
    const WeightUnit& unit = walk.units[i];
    PartPlaces& places = parts.places[parts.place_orders++];
    places = {unit.first_row * taps_of_row, unit.rows * taps_of_row, {}, {}, int64_t{unit.part_steps} * 64};
    if (parts.taps_inside)  // the walk has one tap, whose columns all of them are
      places.taps = static_cast<int>(axes[0].kernel * axes[1].kernel * axes[2].kernel);
    for (int a = 0; a < 3; ++a) {
      places.first[a] = unit.y_first[a];
      places.count[a] = static_cast<int>(unit.counts[a].divisor);
    }
  }
  return parts;
}

}  // namespace retrograd::kernels::cuda
