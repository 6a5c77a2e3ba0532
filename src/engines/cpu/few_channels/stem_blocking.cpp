// SPDX-License-Identifier: Apache-2.0
// The cuts of stem_blocking.h.
#include "engines/cpu/few_channels/stem_blocking.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kYChannelsPerTask = 128;
constexpr int64_t kRowsPerTask = 384;  // of (x channel, tap)
constexpr int64_t kWantedTasks = 8;
constexpr int64_t kStripFloats = 1 << 18;
constexpr int64_t kMostSplitFloats = 1 << 20;  // of the sums of all splits, where there are several

}  // namespace

StemBlocking plan_stem(const ConvPass& pass, int64_t tile_width, int64_t sum_width) {
  StemBlocking cut;
  Positions total{pass.batch, 1, 1, 1};
  cut.taps = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    cut.axes[axis] = forward_phase(pass.axes[axis]);
    total[axis + 1] = cut.axes[axis].count;
    cut.taps *= static_cast<int64_t>(cut.axes[axis].taps.size());
  }
  cut.grid = cut_into_boxes(total, kStemPositionsPerBox);
  for (size_t axis = 0; axis < 3; ++axis) {
    const AxisPhase& a = cut.axes[axis];
    cut.extent[axis] =
        (cut.grid.box[axis + 1] - 1) * a.source_step + a.highest_offset() - a.lowest_offset() + 1;
  }
  const auto y_block = [&](int64_t width) {
    const int64_t y_padded = ceil_div(pass.y_channels_per_group(), width) * width;
    return std::min(y_padded, std::max(width, kYChannelsPerTask / width * width));
  };
  cut.y_block = y_block(tile_width);
  const int64_t plane = cut.grid.box[0] * cut.extent[0] * cut.extent[1] * cut.extent[2];
  const int64_t x_channels = std::min(kRowsPerTask / std::max<int64_t>(cut.taps, 1), kStripFloats / plane);
  cut.x_block = std::clamp<int64_t>(x_channels, 1, pass.x_channels_per_group());
  cut.y_blocks = ceil_div(pass.y_channels_per_group(), cut.y_block);
  cut.x_blocks = ceil_div(pass.x_channels_per_group(), cut.x_block);
  const int64_t blocks =
      pass.groups * ceil_div(pass.y_channels_per_group(), y_block(sum_width)) * cut.x_blocks;
  const int64_t sums = blocks * cut.x_block * cut.taps * y_block(sum_width);
  const int64_t most = std::min(kWantedTasks / blocks, kMostSplitFloats / std::max<int64_t>(sums, 1));
  const int64_t splits = std::clamp<int64_t>(most, 1, cut.grid.count());
  cut.boxes_per_split = ceil_div(cut.grid.count(), splits);
  cut.splits = ceil_div(cut.grid.count(), cut.boxes_per_split);
  return cut;
}

}  // namespace retrograd::engines::cpu
