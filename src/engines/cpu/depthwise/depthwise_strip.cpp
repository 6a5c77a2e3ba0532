// SPDX-License-Identifier: Apache-2.0
// Loading a strip row by row.
#include "engines/cpu/depthwise/depthwise_strip.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::engines::cpu {

// A call to transpose pays from about this many places on.
constexpr int64_t kPlacesPerLoad = 64;

DepthwiseStrip::Ranges DepthwiseStrip::ranges_of(const std::array<GatherAxis, 3>& axes,
                                                 const BoxGrid::Box& box) {
  Ranges ranges;
  for (size_t axis = 0; axis < 3; ++axis)
    ranges[axis] = axes[axis].sources(box.first[axis + 1], box.first[axis + 1] + box.size[axis + 1]);
  return ranges;
}

DepthwiseStrip::DepthwiseStrip(const Ranges& ranges, const problem::Strides5& strides,
                               const LanePlanes* planes, int64_t sources, float* memory, float* buffer)
    : strides_(strides),
      planes_(planes),
      sources_(sources),
      memory_(memory),
      buffer_(buffer),
      ranges_(ranges),
      loaded_(ranges[1].begin),
      at_least_(ceil_div(kPlacesPerLoad, std::max<int64_t>(ranges[2].size(), 1))),
      row_floats_(ranges[2].size() * planes->lanes) {}

int64_t DepthwiseStrip::most_floats(const std::array<GatherAxis, 3>& axes, const BoxGrid& grid,
                                    int64_t sources, int64_t lanes) {
  Checked floats = Checked(sources) * lanes;
  for (size_t axis = 0; axis < 3; ++axis) floats = floats * axes[axis].most_sources(grid.box[axis + 1]);
  return floats.get().value_or(INT64_MAX);
}

void DepthwiseStrip::load_up_to(int64_t end) {
  end = std::min(end, ranges_[1].end);
  if (end <= loaded_) return;
  end = std::min(std::max(end, loaded_ + at_least_), ranges_[1].end);
  const auto& s = strides_;
  for (int64_t source = 0; source < sources_; ++source)
    for (int64_t d = ranges_[0].begin; d < ranges_[0].end; ++d)
      load_lane_rows(
          planes_[source],
          {d * s[2] + loaded_ * s[3] + ranges_[2].begin * s[4], s[3], s[4], end - loaded_, ranges_[2].size()},
          buffer_, const_cast<float*>(row(source, d, loaded_)));
  loaded_ = end;
}

}  // namespace retrograd::engines::cpu
