// SPDX-License-Identifier: Apache-2.0
// Ranges of results and of what they gather.
#include "engines/cpu/depthwise/depthwise_axes.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace retrograd::engines::cpu {

using problem::Range;

std::array<GatherAxis, 3> gather_axes(const problem::ConvPass& pass) {
  std::array<GatherAxis, 3> axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    const problem::Window& w = pass.axes[axis];
    // grad_weight gathers x as forward does.
    if (pass.kind == problem::ConvPassKind::kGradInput) {
      axes[axis] = {.phases = grad_input_phases(w), .results = w.x};
    } else {
      axes[axis] = {.phases = {forward_phase(w)}, .results = w.y};
    }
  }
  return axes;
}

Range positions_in(const AxisPhase& phase, int64_t begin, int64_t end) {
  const int64_t first = ceil_div(std::max<int64_t>(begin - phase.first, 0), phase.step);
  return {first, std::max(first, ceil_div(std::max<int64_t>(end - phase.first, 0), phase.step))};
}

Range live_positions(const AxisPhase& phase, const PhaseTap& tap) {
  const int64_t begin = std::clamp<int64_t>(ceil_div(-tap.offset, phase.source_step), 0, phase.count);
  return {begin, std::clamp(ceil_div(phase.source_size - tap.offset, phase.source_step), begin, phase.count)};
}

int64_t GatherAxis::most_sources(int64_t count) const {
  int64_t lowest = INT64_MAX, highest = INT64_MIN;
  for (const AxisPhase& p : phases) {
    if (p.taps.empty()) continue;
    lowest = std::min(lowest, p.lowest_offset());
    highest = std::max(highest, p.highest_offset());
  }
  if (lowest > highest) return 0;
  // Two phases may start a position apart.
  const int64_t positions = ceil_div(count, step()) + (phases.size() > 1 ? 1 : 0);
  return std::min(phases.front().source_size,
                  (positions - 1) * phases.front().source_step + highest - lowest + 1);
}

Range GatherAxis::sources(int64_t begin, int64_t end) const {
  Range range{INT64_MAX, 0};
  for (const AxisPhase& p : phases) {
    const Range positions = positions_in(p, begin, end);
    if (p.taps.empty() || positions.size() == 0) continue;
    range.begin = std::min(range.begin, positions.begin * p.source_step + p.lowest_offset());
    range.end = std::max(range.end, (positions.end - 1) * p.source_step + p.highest_offset() + 1);
  }
  range.begin = std::max<int64_t>(range.begin, 0);
  range.end = std::min(range.end, phases.front().source_size);
  return range.begin < range.end ? range : Range{0, 0};
}

}  // namespace retrograd::engines::cpu
