// SPDX-License-Identifier: Apache-2.0
// The cuts of grad_weight_blocking.h.
#include "engines/cpu/dense/grad_weight_blocking.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::Window;

constexpr int64_t kSumFloats = 81920;        // of a task
constexpr int64_t kGroupSumFloats = 163840;  // of a task that has several blocks of lanes
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kTaskProducts = 1 << 19;  // about 10 us: less is not worth handing out
constexpr double kPackedPerProduct = 12;    // packing a float costs as much as this many products
constexpr double kNarrowTiles = 1.2;

// Places of rows that are this far apart have lines of their own.
constexpr int64_t kFarFloats = 24;
// Cycles a number that is turned over, a place of a block of lanes that is packed, and what each product
// with rows that are not turned over takes longer.
constexpr double kTurnCycles = 1.2, kPackCycles = 4, kFarCycles = 0.5;
// Plain lanes that lie side by side are read where they are unless they are multiplied more often: packed
// ones are closer together.
constexpr int64_t kMostRowsOfLanes = 64, kMostUsesOfLanes = 256;
constexpr int64_t kMostSplitFloats = 1 << 20;  // of the sums of all splits
constexpr double kWorthCutting = 0.02;         // of a cycle for each product

// Rows whose places are a multiple of 1 KiB apart share a few sets of the caches, from which they push each
// other: this many times slower. Lanes are copied, and have none of it.
constexpr double kCrowded = 1.6;
bool is_crowded(const problem::PassTensor& rows) {
  constexpr int64_t kUnluckyFloats = 256;
  return rows.strides[1] == 1 && rows.strides[4] != 0 && rows.strides[4] % kUnluckyFloats == 0;
}

// Places of x for each of y.
double places_of_x(const ConvPass& pass) {
  double places = 1;
  for (const Window& w : pass.axes) places *= static_cast<double>(w.x) / static_cast<double>(w.y);
  return places;
}

// Whether lanes are read where they are, with so many rows in a task.
bool may_stay(const ConvPass& p, const problem::PassTensor& lanes, int64_t narrowest, int64_t rows,
              int64_t taps) {
  return narrowest == 0 && is_plain(lanes, p.rounding) && lanes.strides[1] == 1 && rows <= kMostRowsOfLanes &&
         rows * taps <= kMostUsesOfLanes;
}

// What the pass costs with these channels as lanes, for each output position.
double cost(const ConvPass& p, const VectorShape& vectors, int64_t narrowest, bool lanes_are_x) {
  const int64_t x = p.x_channels_per_group(), y = p.y_channels_per_group(), taps = taps_of(p);
  const int64_t lanes = lanes_are_x ? x : y, rows = lanes_are_x ? y : x;
  const bool stays = may_stay(p, lanes_are_x ? p.x : p.y, narrowest, rows, taps);
  const double packed = stays ? 0 : lanes_are_x ? places_of_x(p) : 1;  // places, for each of y
  // A tile of few rows waits for its own additions.
  const auto full_rows = static_cast<double>(std::max<int64_t>(rows, p.groups > 1 ? 4 : 6));
  // One of a single vector waits for what it reads, and one of half a vector takes as long.
  const double narrow = lanes <= vectors.floats ? kNarrowTiles : 1;
  const int64_t covered = vectors.covering_lanes(lanes, std::max(narrowest, vectors.floats));
  return static_cast<double>(covered) * full_rows * narrow * static_cast<double>(taps) +
         kPackedPerProduct * static_cast<double>(lanes) * packed;
}

}  // namespace

ConvPass without_idle_places(ConvPass pass) {
  for (size_t axis = 0; axis < 3; ++axis) {
    Window& w = pass.axes[axis];
    if (w.kernel != 1 || w.stride == 1 || w.pad_lo != 0 || (w.y - 1) * w.stride >= w.x) continue;
    if (w.y > 1) pass.x.strides[axis + 2] *= w.stride;
    w.x = w.y;
    w.stride = 1;
  }
  return pass;
}

int64_t GradWeightBlocking::width_at(int64_t lane) const {
  return vectors.next_tile_width(lanes - lane, narrowest);
}

int64_t GradWeightBlocking::lane_first(int64_t block) const {
  // Behind the full tiles there are at most two more, of which the second is behind one of half the width.
  const int64_t full = lanes / width;
  return block <= full ? block * width : full * width + (block - full) * (width / 2);
}

namespace {

// As many blocks of lanes in a task as leave enough tasks and a task's sums in L2.
void group_lanes(const ConvPass& pass, int64_t tasks, GradWeightBlocking& cut) {
  const int64_t sums = taps_of(pass) * cut.row_block * cut.width;
  const int64_t most = std::clamp<int64_t>(kGroupSumFloats / sums, 1, cut.lane_blocks);
  for (cut.lane_group = most; cut.lane_group > 1; --cut.lane_group)
    if (cut.blocks(pass.groups) * cut.grid.count() >= tasks) return;
}

// Rows turned over, if the products that they serve gain more than that takes: more of them do in a task that
// has several blocks of lanes, and fewer rows instead.
void turn_rows(const ConvPass& pass, int64_t tasks, int64_t rows, GradWeightBlocking& cut) {
  const double places = cut.lanes_are_x ? 1 : places_of_x(pass);
  const auto products = static_cast<double>(taps_of(pass)) / places;  // of a number with a block of lanes
  double best = kPackCycles / static_cast<double>(cut.row_block) + kFarCycles * products;
  GradWeightBlocking tried = cut;
  // With a block of rows for every task the cut follows from the size of a block alone.
  const auto next = [&](const GradWeightBlocking& t) {
    return t.row_blocks < tasks ? t.row_blocks + 1 : ceil_div(rows, t.row_block - 1);
  };
  for (; tried.row_block >= kernels::cpu::kMostTileRows; tried.row_blocks = next(tried)) {
    tried.row_block = ceil_div(rows, tried.row_blocks);
    group_lanes(pass, tasks, tried);
    const double cycles = kPackCycles / static_cast<double>(tried.row_block) +
                          kTurnCycles / static_cast<double>(tried.lane_group);
    if (cycles > best - kWorthCutting * products) continue;
    best = cycles;
    cut = tried;
    cut.turns_rows = true;
  }
  cut.row_blocks = ceil_div(rows, cut.row_block);
}

GradWeightBlocking plan_sides(const ConvPass& pass, const VectorShape& vectors, int64_t narrowest,
                              bool registers, bool lanes_are_x) {
  GradWeightBlocking cut;
  cut.vectors = vectors;
  cut.narrowest = narrowest;
  cut.lanes_are_x = lanes_are_x;
  const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group(), taps = taps_of(pass);
  const Positions total{pass.batch, pass.axes[0].y, pass.axes[1].y, pass.axes[2].y};
  const int64_t rows = cut.lanes_are_x ? y : x;
  cut.lanes = cut.lanes_are_x ? x : y;
  cut.width = std::max(vectors.fitting_tile_width(cut.lanes), narrowest);
  cut.lane_blocks = cut.lanes / cut.width;
  for (int64_t lane = cut.lane_blocks * cut.width; lane < cut.lanes; lane += cut.width_at(lane))
    ++cut.lane_blocks;
  cut.grid = cut_into_boxes(total, kPositionsPerBox);
  for (size_t axis = 0; axis < 3; ++axis) {
    const Window& w = pass.axes[axis];
    cut.extent[axis] =
        std::min(w.x, (cut.grid.box[axis + 1] - 1) * w.stride + (w.kernel - 1) * w.dilation + 1);
  }
  const int64_t most_rows = std::max<int64_t>(kSumFloats / (taps * cut.width), kernels::cpu::kMostTileRows);
  cut.row_blocks = ceil_div(rows, most_rows);
  cut.row_block = ceil_div(rows, cut.row_blocks);
  const double products = static_cast<double>(count_of(total)) * static_cast<double>(taps) *
                          static_cast<double>(x) * static_cast<double>(y) * static_cast<double>(pass.groups);
  const auto tasks =
      static_cast<int64_t>(std::clamp(products / kTaskProducts, 1.0, static_cast<double>(kWantedTasks)));
  const problem::PassTensor& row_tensor = lanes_are_x ? pass.y : pass.x;
  const bool far_apart = !registers && narrowest == 0 && is_plain(row_tensor, pass.rounding) &&
                         row_tensor.strides[1] == 1 && row_tensor.strides[4] >= kFarFloats;
  if (registers) group_lanes(pass, tasks, cut);
  if (far_apart) turn_rows(pass, tasks, rows, cut);
  const problem::PassTensor& lane_tensor = lanes_are_x ? pass.x : pass.y;
  cut.lanes_stay = !registers && may_stay(pass, lane_tensor, narrowest, cut.row_block, taps);
  // Rows are read from L2 then. The tasks there were are enough for small passes, too.
  if (cut.lanes_stay && !cut.turns_rows) group_lanes(pass, kWantedTasks, cut);
  int64_t splits = std::clamp<int64_t>(tasks / cut.blocks(pass.groups), 1, cut.grid.count());
  // Groups side by side have lines and pages in common: one box of all of them after the other.
  if (lane_tensor.strides[1] == 1 && pass.groups > 1)
    splits = std::clamp<int64_t>(kMostSplitFloats / (pass.groups * taps * x * y), splits, cut.grid.count());
  cut.boxes_per_split = ceil_div(cut.grid.count(), splits);
  cut.splits = ceil_div(cut.grid.count(), cut.boxes_per_split);
  return cut;
}

// Numbers that all tasks copy for each output position; those of lanes are turned over, too.
double copies(const ConvPass& pass, const GradWeightBlocking& cut) {
  const double x = places_of_x(pass);
  const auto lanes = static_cast<double>(cut.lanes * cut.row_blocks);
  const auto rows = static_cast<double>(cut.row_block * cut.row_blocks * cut.lane_groups());
  return cut.lanes_are_x ? 2 * lanes * x + rows : 2 * lanes + rows * x;
}

}  // namespace

GradWeightBlocking plan_grad_weight(const ConvPass& pass, const VectorShape& vectors, const VectorShape& sums,
                                    int64_t narrowest, bool registers) {
  if (registers) {
    const GradWeightBlocking x = plan_sides(pass, vectors, narrowest, true, true);
    if (pass.axes[2].stride != 1) return x;
    const GradWeightBlocking y = plan_sides(pass, vectors, narrowest, true, false);
    return copies(pass, x) <= copies(pass, y) ? x : y;
  }
  const double lanes_x = cost(pass, sums, narrowest, true) * (is_crowded(pass.y) ? kCrowded : 1);
  const double lanes_y = cost(pass, sums, narrowest, false) * (is_crowded(pass.x) ? kCrowded : 1);
  GradWeightBlocking cut = plan_sides(pass, vectors, narrowest, false, lanes_x <= lanes_y);
  if (sums == vectors) return cut;
  const GradWeightBlocking of_sums = plan_sides(pass, sums, narrowest, false, lanes_x <= lanes_y);
  cut.boxes_per_split = of_sums.boxes_per_split;
  cut.splits = of_sums.splits;
  return cut;
}

}  // namespace retrograd::engines::cpu
