// SPDX-License-Identifier: Apache-2.0
// How group_rows shares out groups to blocks and positions to boxes: the cheapest way.
#include <cmath>

#include "kernels/cuda/group_boxes/group_cuts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kProcessors = 132, kMostResident = 2;  // blocks of a multiprocessor
constexpr int64_t kAllShared = 226 << 10, kMostWeights = 64 << 10, kMostPositions = 256;

// Cycles of a multiprocessor, and bytes in one.
constexpr double kBytes = 18, kItem = 110, kTap = 5, kBox = 1600, kLatency = 500, kWord = 0.2;
constexpr double kProduct = 3.5;             // of 16 x 8 by 16
constexpr double kPace = 1700, kEnds = 2.4;  // cycles of a microsecond; microseconds

void set_time(GroupRows& plan) {
  const GroupProduct& p = plan.product;
  const double items = ceil_of(p.positions, kGroupTile) * static_cast<double>(p.quads);
  // Of one tap: fragments of both operands out of shared memory, or products.
  const double groups_met = std::min<double>(p.groups, 1 + 3.0 / p.columns);
  const double read = p.terms * (4 * groups_met * conflicts_of(p) + 4),
               made = ceil_of(p.terms, 2) * 8 * kProduct;
  const double work = items * (p.residues * kItem + p.taps * (std::max(read, made) + kTap));
  const double moved =
      (p.staged * static_cast<double>(p.chunks) + static_cast<double>(p.positions) * p.residues * p.tiles) *
      16 / kBytes;
  const double box = work + moved;
  const auto resident =
      static_cast<int>(std::min<int64_t>(kMostResident, kAllShared / (p.shared_bytes + 1024)));
  const int each = ceil_of(p.boxes, std::max(1, kProcessors * resident / plan.slabs));
  plan.workers = ceil_of(p.boxes, each);
  // Throughput, or the boxes of one block after another.
  const double together = std::ceil(static_cast<double>(plan.workers) * plan.slabs / kProcessors);
  const double cycles =
      each * (box * together + kBox * std::ceil(together / resident)) + p.weight_bytes * kWord + kLatency;
  plan.microseconds = cycles / kPace + kEnds;
}

}  // namespace

GroupRows group_rows_plan(const Conv& conv, bool forward, std::span<const ProductAxes> residues) {
  GroupRows best;
  GroupProduct product{};
  if (!set_group_product(product, conv, forward, residues)) return best;
  each_slab(product, [&](const GroupProduct& slab) {
    const int64_t weight_bytes = int64_t{slab.taps} * slab.quads * slab.terms * 512;
    if (weight_bytes > kMostWeights) return;
    each_box(slab, kMostPositions, [&](const GroupProduct& box) {
      GroupRows plan{box, true, slabs_of(box), 0, 0};
      GroupProduct& p = plan.product;
      p.weight_bytes = static_cast<int>(weight_bytes);
      p.shared_bytes = 2 * p.stage_bytes + p.weight_bytes + (p.staged + p.positions) * 16 +
                       ceil_of(p.taps, 2) * 16 + (p.residues + 4) / 4 * 16 + p.quads * (128 + 16);
      if (p.shared_bytes > kGroupShared) return;
      set_time(plan);
      if (!best.fits || plan.microseconds < best.microseconds) best = plan;
    });
  });
  if (best.fits) set_divisions(best.product);
  return best;
}

}  // namespace retrograd::kernels::cuda
