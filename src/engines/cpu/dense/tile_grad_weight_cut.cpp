// SPDX-License-Identifier: Apache-2.0
// The cuts of tile_grad_weight_cut.h.
#include "engines/cpu/dense/tile_grad_weight_cut.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/grad_weight_blocking.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::Window;

constexpr int64_t kSumFloats = 131072;      // of a task: half a megabyte of L2
constexpr int64_t kCopyNumbers = 262144;    // of a task, all copies together: the same
constexpr int64_t kFewestNumbers = 512;     // of a box; with fewer, sums are taken up too often
constexpr int64_t kFewestRows = 12;         // that fill a register
constexpr int64_t kRegister = 16;           // rows, or lanes
constexpr int64_t kTaskProducts = 1 << 22;  // about 10 us
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kMostFarPlaces = 1 << 16;

int64_t rounded_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }
int64_t even_piece(int64_t total, int64_t most) { return ceil_div(total, ceil_div(total, most)); }

TileAxis axis_of(const Window& w) {
  TileAxis axis;
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    const int64_t residue = tap * w.dilation % w.stride;
    const auto found = std::find(axis.residues.begin(), axis.residues.end(), residue);
    axis.phase_of.push_back(found - axis.residues.begin());
    if (found == axis.residues.end()) axis.residues.push_back(residue);
    axis.steps_of.push_back(tap * w.dilation / w.stride);
  }
  axis.halo = std::min(axis.steps_of.back(), kMostFarPlaces);  // more does not fit
  return axis;
}

// Blocks of both sides' channels whose sums a task has room for: about as many of the one as of the other, so
// that both are copied equally seldom.
void cut_channels(int64_t x, int64_t y, TileGradWeightCut& cut) {
  constexpr int64_t kLanes = TileGradWeightCut::kLanes;
  const int64_t taps = cut.taps * cut.folded_taps, lanes = rounded_up(y, kLanes);
  cut.row_block = x;
  cut.lane_block = lanes;
  if (taps * x * lanes > kSumFloats) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(kSumFloats) / static_cast<double>(taps)));
    const int64_t y_side = std::max(side, kSumFloats / (taps * x));
    cut.lane_block = even_piece(lanes / kLanes, std::max<int64_t>(y_side / kLanes, 1)) * kLanes;
    const int64_t room = kSumFloats / (taps * cut.lane_block) / kLanes * kLanes;
    cut.row_block = std::min(x, std::max(room, kRegister));
  }
  cut.row_blocks = ceil_div(x, cut.row_block);
  cut.lane_blocks = ceil_div(lanes, cut.lane_block);
}

}  // namespace

TileSpace::TileSpace(const std::array<TileAxis, 3>& axes, const Positions& box) {
  for (size_t axis = 0; axis < 3; ++axis) extent[axis] = box[axis + 1] + axes[axis].halo;
  const int64_t width = rounded_up(extent[2], 2);
  step = {extent[0] * extent[1] * width, extent[1] * width, width, 1};
  numbers = rounded_up(box[0] * step[0], kPiece);
  // An odd number of lines of memory, so that channels do not share a few sets of the caches.
  pitch = numbers + kPiece;
  if (pitch / kPiece % 2 == 0) pitch += kPiece;
}

TileGradWeightCut::TileGradWeightCut(const ConvPass& given) : pass(joined_rows(without_idle_places(given))) {
  const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group();
  for (size_t i = 0; i < 3; ++i) {
    axes[i] = axis_of(pass.axes[i]);
    phases *= static_cast<int64_t>(axes[i].residues.size());
  }
  while (folded_from > 0 && x * folded_taps < kFewestRows) folded_taps *= pass.axes[--folded_from].kernel;
  for (size_t i = 0; i < folded_from; ++i) {
    taps *= pass.axes[i].kernel;
    outer_phases *= static_cast<int64_t>(axes[i].residues.size());
  }
  cut_channels(x, y, *this);

  const Positions total{pass.batch, pass.axes[0].y, pass.axes[1].y, pass.axes[2].y};
  const double products = static_cast<double>(count_of(total)) * static_cast<double>(taps * folded_taps) *
                          static_cast<double>(x) * static_cast<double>(y) * static_cast<double>(pass.groups);
  const auto tasks =
      static_cast<int64_t>(std::clamp(products / kTaskProducts, 1.0, static_cast<double>(kWantedTasks)));
  const int64_t wanted_splits = std::max<int64_t>(tasks / blocks(), 1);
  // For each number: copies of x and of folded taps, of y, and what is turned over.
  const int64_t copies =
      row_block * (phases + (folded_taps > 1 ? folded_taps * outer_phases : 0)) + lane_block + kLanes;
  const int64_t room = std::clamp(kCopyNumbers / copies, kFewestNumbers, kMostPieces * kPiece);
  int64_t positions = std::clamp(ceil_div(count_of(total), wanted_splits), kFewestNumbers, room);
  for (;; positions /= 2) {
    grid = cut_into_boxes(total, positions);
    const TileSpace space(axes, grid.box);
    numbers = space.numbers;
    pitch = space.pitch;
    if (numbers <= room || positions <= kPiece) break;
  }
  const int64_t most = std::min(wanted_splits, grid.count());
  boxes_per_split = ceil_div(grid.count(), most);
  splits = ceil_div(grid.count(), boxes_per_split);
}

}  // namespace retrograd::engines::cpu
