// SPDX-License-Identifier: Apache-2.0
// The residue arithmetic of axis_phases.h.
#include "engines/cpu/axis_phases.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace retrograd::engines::cpu {

// Offsets grow or fall with the taps: the ends of the list are the extremes.
int64_t AxisPhase::lowest_offset() const {
  return taps.empty() ? 0 : std::min(taps.front().offset, taps.back().offset);
}

int64_t AxisPhase::highest_offset() const {
  return taps.empty() ? 0 : std::max(taps.front().offset, taps.back().offset);
}

bool AxisPhase::leaves_source() const {
  return lowest_offset() < 0 || highest_offset() + (count - 1) * source_step >= source_size;
}

AxisPhase forward_phase(const problem::Window& w) {
  AxisPhase phase{
      .count = w.y, .first = 0, .step = 1, .source_size = w.x, .source_step = w.stride, .taps = {}};
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    // A tap that no output reads through only widens the strip.
    if (live_outputs(w, tap).size() > 0) phase.taps.push_back({tap, tap * w.dilation - w.pad_lo});
  }
  return phase;
}

std::vector<AxisPhase> grad_input_phases(const problem::Window& w) {
  std::vector<AxisPhase> phases;
  for (int64_t residue = 0; residue < std::min(w.stride, w.x); ++residue) {
    AxisPhase phase{.count = ceil_div(w.x - residue, w.stride),
                    .first = residue,
                    .step = w.stride,
                    .source_size = w.y,
                    .source_step = 1,
                    .taps = {}};
    const problem::ResidueTaps taps = residue_taps(w, residue);
    for (int64_t k = 0; k < taps.count; ++k) {
      const int64_t tap = taps.first + k * taps.spacing, offset = taps.offset - k * taps.step;
      if (offset < w.y && offset + phase.count > 0 && live_outputs(w, tap).size() > 0)
        phase.taps.push_back({tap, offset});
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

problem::ConvPass with_long_rows(problem::ConvPass pass, int64_t shortest, AxisLength* length_of) {
  const auto length = [&](size_t axis) { return length_of(pass, pass.axes[axis]); };
  const size_t longest = length(0) > length(1) ? 0 : 1;
  if (length(2) >= std::min(shortest, length(longest))) return pass;
  std::swap(pass.axes[longest], pass.axes[2]);
  for (problem::PassTensor* t : {&pass.x, &pass.y, &pass.w})
    std::swap(t->strides[longest + 2], t->strides[4]);
  return pass;
}

}  // namespace retrograd::engines::cpu
