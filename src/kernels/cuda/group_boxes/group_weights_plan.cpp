// SPDX-License-Identifier: Apache-2.0
// How group_weights shares out groups and pixels: the cheapest way. Parts are the order of sums: a function
// of the problem alone.
#include <cmath>

#include "kernels/cuda/group_boxes/group_cuts.h"
#include "kernels/cuda/group_boxes/group_weights.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kProcessors = 132, kMostResident = 2, kMostOfWarp = 9;
constexpr int64_t kMostPositions = 512, kMostPartBytes = 48 << 20;

// Cycles of a multiprocessor, and bytes in one.
constexpr double kBytes = 20, kStaged = 3, kBox = 900, kLatency = 4000, kTap = 10, kStep = 30, kRole = 400;
constexpr double kPace = 1700, kEnds = 3, kSummed = 1.5e6;  // bytes of parts in a microsecond

void set_owners(GroupWeightsCut& c) {
  const GroupProduct& p = c.product;
  c.paired = p.terms == 1 && p.columns == 1;
  c.units = c.paired ? ceil_of(p.groups, 2) : p.groups * ceil_of(p.terms, 2) * ceil_of(p.columns, 2);
  c.of_warp = ceil_of(p.taps, ceil_of(p.taps, kMostOfWarp)) | 1;
  c.owners = ceil_of(p.taps, c.of_warp);
  c.slices = ceil_of(c.units * c.owners, kGroupWarps);
  c.shares = std::max(1, kGroupWarps / (c.units * c.owners));
  c.y_pitch = (p.tiles | 1) * 16;
}

int tiles_of(const GroupAxis& axis) { return ceil_of(axis.positions, axis.places); }
// Boxes that hold whole rows together, or in 3-D whole planes.
int boxes_of_band(const GroupProduct& p) {
  return tiles_of(p.axes[2]) * (p.axes[0].positions == 1 ? 1 : tiles_of(p.axes[1]));
}

void set_time(GroupWeights& plan) {
  GroupWeightsCut& c = plan.cut;
  const GroupProduct& p = c.product;
  const int blocks = slabs_of(p) * c.slices;
  const int64_t most =
      std::max<int64_t>(1, std::min<int64_t>(kProcessors * kMostResident / blocks,
                                             kMostPartBytes / 4 / std::max<int64_t>(c.weights, 1)));
  // Whole bands: what is NaN in a part is added again (part_rows.h).
  const int boxes = boxes_of_band(p);
  c.in_part = ceil_of(ceil_of(p.boxes, most), boxes) * boxes;
  c.parts = ceil_of(p.boxes, c.in_part);
  const double conflicts = conflicts_of(p);
  const double roles = static_cast<double>(c.units) * c.owners / c.slices;
  // Steps of 16 places: a share's, or what shared memory takes for all.
  const double steps = c.filled / 16.0, a_step = c.of_warp * std::max(3.5, 4 * conflicts) + 4;
  const double work = steps * roles * a_step + (p.staged * p.chunks + c.filled * p.tiles) / 32.0 * kStaged,
               alone = steps / c.shares * (c.of_warp * (kTap + 4 * conflicts) + kStep);
  const double moved =
      (p.staged * static_cast<double>(p.chunks) + p.positions * static_cast<double>(p.tiles)) * 16 / kBytes;
  const double box = std::max(work, moved) + 0.7 * std::min(work, moved);
  const double together = std::ceil(static_cast<double>(c.parts) * blocks / kProcessors),
               waves = std::ceil(together / kMostResident);
  const double cycles = c.in_part * std::max(box * together + kBox * waves, (alone + kBox) * waves) +
                        (kLatency + kRole * roles) * waves;
  plan.microseconds = cycles / kPace + static_cast<double>(c.weights) * c.parts * 8 / kSummed + kEnds;
}

PartRows rows_of(const GroupWeightsCut& c) {
  const GroupProduct& p = c.product;
  const GroupAxis &d = p.axes[0], &h = p.axes[1];
  const int64_t height = int64_t{d.positions} * h.positions;
  if (p.images > 1) return {int64_t{c.in_part} * p.images, 1, height, 1, height};
  const int64_t bands = c.in_part / boxes_of_band(p);
  if (d.positions == 1) return {bands, tiles_of(h), h.places, 1, height};
  return {bands, tiles_of(d), int64_t{d.places} * h.positions, 1, height};
}

}  // namespace

GroupWeights group_weights_plan(const Conv& conv, const ProductAxes& axes) {
  GroupWeights best;
  GroupProduct product{};
  if (!set_group_product(product, conv, true, {&axes, 1})) return best;
  each_slab(product, [&](const GroupProduct& slab) {
    GroupWeights plan;
    plan.cut.product = slab;
    set_owners(plan.cut);
    plan.cut.weights = conv.groups * conv.y_channels * conv.x_channels * slab.taps;
    each_box(slab, kMostPositions, [&](const GroupProduct& box) {
      GroupWeightsCut& c = plan.cut;
      GroupProduct& p = c.product;
      p = box;
      c.filled = ceil_of(p.positions, 16) * 16;
      c.y_bytes = c.filled * c.y_pitch + 16;
      p.shared_bytes = std::max(2 * (p.stage_bytes + c.y_bytes), c.shares * c.of_warp * 1024) +
                       (p.staged + p.positions) * 16 + ceil_of(p.taps, 4) * 16;
      if (p.shared_bytes > kGroupShared) return;
      plan.fits = true;
      set_time(plan);
      if (!best.fits || plan.microseconds < best.microseconds) best = plan;
    });
  });
  if (!best.fits) return best;
  set_divisions(best.cut.product);
  best.rows = rows_of(best.cut);
  return best;
}

}  // namespace retrograd::kernels::cuda
