// SPDX-License-Identifier: Apache-2.0
// Cutting a pass for narrow_grad_weight.
#include "engines/cpu/few_channels/dots_cut.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/rows.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

// Of the rows that one call of the kernel goes through, again and again for its terms: from L2, which is as
// fast as from L1, while short pieces of many channels are slow to fetch from further away.
constexpr int64_t kYFloats = 16384;
constexpr int64_t kSumFloats = 81920;  // of one task, vectors: they stay in L2
constexpr int64_t kLineFloats = 16;
constexpr int64_t kTurnedFloats = 32768;  // of x, and of y, that are turned over at once: they stay in L2
constexpr int64_t kFewestPositions = 256;
constexpr int64_t kWantedTasks = 16;

int64_t rounded_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Cycles for one vector of positions of one y channel: the multiply-adds, or the loads where they are more. A
// vector as long as a line of the cache takes two, unless all of them begin with one.
double cycles(const ConvPass& pass, const DotsCut& cut, int64_t channels) {
  const auto& s = pass.y.strides;
  const int64_t x_loads = cut.vectors.dot_lanes() < kLineFloats ? 1 : 2;
  const int64_t y_loads = s[1] % kLineFloats == 0 && s[3] % kLineFloats == 0 ? 1 : x_loads;
  const int64_t terms = cut.taps * std::min(pass.x_channels_per_group(), kSumFloats / cut.taps);
  const int64_t tiles = ceil_div(terms, cut.vectors.dot_terms(static_cast<int>(channels)));
  int64_t sum = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t in_tile = (i + 1) * terms / tiles - i * terms / tiles;
    sum += std::max(channels * in_tile, channels * y_loads + in_tile * x_loads);
  }
  return static_cast<double>(sum) / static_cast<double>(channels);
}

// Of a call: as many as there may be, or half of them with twice the terms.
int64_t channels_of_call(const ConvPass& pass, const DotsCut& cut) {
  const int64_t y = pass.y_channels_per_group(), most = cut.vectors.dot_channels();
  const int64_t many = ceil_div(y, ceil_div(y, most)), few = ceil_div(y, ceil_div(y, most / 2));
  return cut.taps > 0 && cycles(pass, cut, few) < cycles(pass, cut, many) ? few : many;
}

void cut_channels(const ConvPass& pass, DotsCut& cut) {
  const int64_t y = pass.y_channels_per_group(), x = pass.x_channels_per_group();
  const int64_t term = std::max<int64_t>(cut.taps, 1) * cut.vectors.dot_lanes();
  cut.call_channels = channels_of_call(pass, cut);
  cut.x_block = std::clamp<int64_t>(kSumFloats / (cut.call_channels * term), 1, x);
  const int64_t calls = std::max<int64_t>(1, kSumFloats / (cut.call_channels * cut.x_block * term));
  cut.y_blocks = ceil_div(y, calls * cut.call_channels);
  cut.y_block = std::min(y, rounded_up(ceil_div(y, cut.y_blocks), cut.call_channels));
  cut.y_blocks = ceil_div(y, cut.y_block);
  cut.x_blocks = ceil_div(x, cut.x_block);
}

void choose_rows(const ConvPass& pass, DotsCut& cut) {
  const auto& extent = cut.strips.extent();
  const auto& s = pass.y.strides;
  const auto& box = cut.grid.box;
  const int64_t lanes = cut.vectors.dot_lanes();
  const bool plain = is_plain(pass.y, pass.rounding) && s[4] == 1;
  const int64_t row = box[3], pitch = extent[2], filled = rounded_up(row, lanes);
  if (plain && s[3] == row && pitch == row && row == cut.grid.total[3]) {
    cut.y = DotsRows::kJoined;
  } else if (plain && (row == filled || cut.grid.boxes[3] > 1)) {
    cut.y = DotsRows::kInPlace;
  } else {
    cut.y = pitch <= filled ? DotsRows::kOneRow : DotsRows::kFilled;
    cut.y_pitch = std::min(pitch, filled);
    cut.y_extent = cut.y == DotsRows::kOneRow ? extent : std::array<int64_t, 3>{box[1], box[2], cut.y_pitch};
    cut.y_stride = rounded_up(box[0] * cut.y_extent[0] * cut.y_extent[1] * cut.y_extent[2], lanes);
  }
}

// A line holds channels of several narrow groups, and is read once if they are turned over together: 2.8 ms
// became 1.0 for rnxt_g32_3x3_56_c128.
int64_t groups_of_a_line(const ConvPass& pass, const DotsCut& cut, int64_t positions) {
  if (!is_channels_last(pass.x) || !is_channels_last(pass.y) || cut.x_blocks > 1 || cut.y_blocks > 1)
    return 1;
  const int64_t channels = std::max(pass.x_channels_per_group(), pass.y_channels_per_group());
  const int64_t sums = cut.y_block * cut.x_block * std::max<int64_t>(cut.taps, 1) * cut.vectors.dot_lanes();
  const int64_t tasks = pass.groups * ceil_div(positions, kFewestPositions);
  return std::max<int64_t>(
      1, std::min({kLineFloats / channels, pass.groups, tasks / kWantedTasks, kSumFloats / sums}));
}

void cut_positions(const ConvPass& pass, DotsCut& cut) {
  const int64_t lanes = cut.vectors.dot_lanes();
  const Positions total{pass.batch, cut.axes[0].count, cut.axes[1].count, cut.axes[2].count};
  cut.groups_at_once = groups_of_a_line(pass, cut, count_of(total));
  const int64_t blocks = ceil_div(pass.groups, cut.groups_at_once) * cut.y_blocks * cut.x_blocks;
  const int64_t per_task = ceil_div(count_of(total), ceil_div(kWantedTasks, blocks));
  int64_t wanted = std::min(kYFloats / cut.call_channels, per_task);
  if (cut.groups_at_once > 1)
    wanted = std::min(wanted, kTurnedFloats / (cut.groups_at_once * std::max(cut.x_block, cut.y_block)));
  cut.grid = cut_into_boxes(total, std::max(kFewestPositions, wanted));
  if (cut.grid.boxes[3] > 1) {
    cut.grid.box[3] = rounded_up(cut.grid.box[3], lanes);
    cut.grid.boxes[3] = ceil_div(total[3], cut.grid.box[3]);
  }
  std::array<StripAxis, 3> axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    const AxisFold& a = cut.axes[axis];
    axes[axis] = {a.lowest_offset(), a.highest_offset(), a.source_step, a.source_size};
  }
  cut.strips = ResidueStrips(axes, cut.grid.box);
  const int64_t splits = std::clamp<int64_t>(kWantedTasks / blocks, 1, cut.grid.count());
  cut.boxes_per_split = ceil_div(cut.grid.count(), splits);
  cut.splits = ceil_div(cut.grid.count(), cut.boxes_per_split);
}

}  // namespace

DotsCut cut_dots(const ConvPass& pass, const VectorShape& vectors) {
  DotsCut cut;
  cut.vectors = vectors;
  for (size_t axis = 0; axis < 3; ++axis) {
    cut.axes[axis] = std::move(forward_folds(pass.axes[axis]).front());
    cut.taps *= static_cast<int64_t>(cut.axes[axis].offsets.size());
  }
  cut_channels(pass, cut);
  cut_positions(pass, cut);
  choose_rows(pass, cut);
  return cut;
}

}  // namespace retrograd::engines::cpu
