// SPDX-License-Identifier: Apache-2.0
// The cuts of grad_weight_blocking.h.
#include "engines/cpu/grad_weight_blocking.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::Window;

constexpr int64_t kPositionsPerBox = 768;  // 112 is a third slower: sums are loaded and stored once a box
constexpr int64_t kSumFloats = 81920;      // of a task
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kTaskProducts = 1 << 19;  // about 10 us: less is not worth handing out
constexpr double kPackedPerProduct = 12;    // packing a float costs as much as this many products

int64_t taps_of(const ConvPass& p) { return p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel; }

// What the pass costs with these channels as lanes, for each output position.
double cost(const ConvPass& p, int64_t narrowest, int64_t lanes, int64_t rows, int64_t taps, double places) {
  // A tile of few rows waits for its own additions.
  const auto full_rows = static_cast<double>(std::max<int64_t>(rows, p.groups > 1 ? 4 : 6));
  return static_cast<double>(kernels::cpu::covering_lanes(lanes, narrowest)) * full_rows *
             static_cast<double>(taps) +
         kPackedPerProduct * static_cast<double>(lanes) * places;
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
  return kernels::cpu::next_tile_width(lanes - lane, narrowest);
}

int64_t GradWeightBlocking::lane_first(int64_t block) const {
  // Behind the full tiles there are at most two more, of which the second is behind one of half the width.
  const int64_t full = lanes / width;
  return block <= full ? block * width : full * width + (block - full) * (width / 2);
}

GradWeightBlocking plan_grad_weight(const ConvPass& pass, int64_t narrowest) {
  GradWeightBlocking cut;
  cut.narrowest = narrowest;
  const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group(), taps = taps_of(pass);
  Positions total{pass.batch, 1, 1, 1};
  double places = 1;  // of x for each of y
  for (size_t axis = 0; axis < 3; ++axis) {
    total[axis + 1] = pass.axes[axis].y;
    places *= static_cast<double>(pass.axes[axis].x) / static_cast<double>(pass.axes[axis].y);
  }
  cut.lanes_are_x = cost(pass, narrowest, x, y, taps, places) <= cost(pass, narrowest, y, x, taps, 1);
  const int64_t rows = cut.lanes_are_x ? y : x;
  cut.lanes = cut.lanes_are_x ? x : y;
  cut.width = kernels::cpu::fitting_tile_width(cut.lanes);
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
  const int64_t splits = std::clamp<int64_t>(tasks / cut.blocks(pass.groups), 1, cut.grid.count());
  cut.boxes_per_split = ceil_div(cut.grid.count(), splits);
  cut.splits = ceil_div(cut.grid.count(), cut.boxes_per_split);
  return cut;
}

}  // namespace retrograd::engines::cpu
