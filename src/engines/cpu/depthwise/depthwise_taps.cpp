// SPDX-License-Identifier: Apache-2.0
// Listing taps by phase, packing their weights, and calling the kernel phase by phase.
#include "engines/cpu/depthwise/depthwise_taps.h"

#include <algorithm>

namespace retrograd::engines::cpu {

using problem::Range;

DepthwiseTaps::DepthwiseTaps(const problem::ConvPass& pass, const std::array<GatherAxis, 3>& axes)
    : axes_(axes), kernel_{pass.axes[0].kernel, pass.axes[1].kernel, pass.axes[2].kernel} {
  for (const AxisPhase& phase : axes[2].phases) {
    Phase row{.first_slot = slots(), .full = {0, phase.count}};
    for (const PhaseTap& tap : phase.taps) {
      const Range live = live_positions(phase, tap);
      row.full.begin = std::max(row.full.begin, live.begin);
      row.full.end = std::min(row.full.end, live.end);
      in_order_ &= tap.tap == slots();
      taps_.push_back({.offset = tap.offset, .begin = live.begin, .end = live.end});
      tap_numbers_.push_back(tap.tap);
    }
    phases_.push_back(row);
  }
  in_order_ &= slots() == kernel_[2];
  for (const AxisPhase& phase : axes[1].phases) {
    Range full{0, phase.count};
    for (const PhaseTap& tap : phase.taps) {
      const Range live = live_positions(phase, tap);
      full = {std::max(full.begin, live.begin), std::min(full.end, live.end)};
    }
    full_rows_.push_back(full);
  }
}

void DepthwiseTaps::pack(const LanePlanes& planes, const problem::Strides5& s, float* unordered,
                         float* buffer, float* packed) const {
  const auto& [kd, kh, kw] = kernel_;
  const int64_t lanes = planes.lanes;
  float* loaded = in_order_ ? packed : unordered;
  if (s[2] == s[4] * kh * kw && s[3] == s[4] * kw) {
    load_lanes(planes, 0, s[4], kd * kh * kw, buffer, loaded);
  } else {
    for (int64_t d = 0; d < kd; ++d)
      load_lane_rows(planes, {d * s[2], s[3], s[4], kh, kw}, buffer, loaded + d * kh * kw * lanes);
  }
  if (in_order_) return;
  for (int64_t row = 0; row < kd * kh; ++row)
    for (int64_t slot = 0; slot < slots(); ++slot)
      std::copy_n(loaded + (row * kw + tap_numbers_[static_cast<size_t>(slot)]) * lanes, lanes,
                  packed + (row * slots() + slot) * lanes);
}

void DepthwiseTaps::run_row(const Range& results, kernels::cpu::DepthwiseRow row, std::byte* out) const {
  const auto bytes = static_cast<int64_t>(size_of(row.type));
  for (size_t i = 0; i < phases_.size(); ++i) {
    const AxisPhase& pw = axes_[2].phases[i];
    const Range positions = positions_in(pw, results.begin, results.end);
    row.source_step = pw.source_step;
    row.source_size = pw.source_size;
    row.taps = taps_.data() + phases_[i].first_slot;
    row.tap_count = static_cast<int64_t>(pw.taps.size());
    row.first_slot = phases_[i].first_slot;
    row.full_begin = phases_[i].full.begin;
    row.full_end = phases_[i].full.end;
    row.first = positions.begin;
    row.count = positions.size();
    row.out = out + (pw.first + positions.begin * pw.step - results.begin) * row.out_place * bytes;
    row.out_step = pw.step;
    kernels::cpu::depthwise_row(row);
  }
}

}  // namespace retrograd::engines::cpu
