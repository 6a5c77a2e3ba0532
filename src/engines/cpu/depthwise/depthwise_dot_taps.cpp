// SPDX-License-Identifier: Apache-2.0
// Calling depthwise_dots() for live rows and taps only.
#include "engines/cpu/depthwise/depthwise_dot_taps.h"

#include <algorithm>

namespace retrograd::engines::cpu {
namespace {

using problem::Range;

Range overlap(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

DepthwiseDotTaps::DepthwiseDotTaps(const problem::ConvPass& pass, const GatherAxis& columns)
    : rows_(pass.axes[1]), columns_(pass.axes[2]) {
  for (int64_t tap = 0; tap < columns_.kernel; ++tap) {
    const Range live =
        live_positions(columns.phases.front(), {tap, tap * columns_.dilation - columns_.pad_lo});
    begin_.push_back(live.begin);
    end_.push_back(live.end);
  }
  for (int64_t tap = 0; tap < rows_.kernel; ++tap) live_rows_.push_back(live_outputs(rows_, tap));
}

void DepthwiseDotTaps::add(const Range& rows, int64_t x_first, int64_t lanes,
                           kernels::cpu::DepthwiseDots dots) const {
  const std::byte *const x = dots.x, *const y = dots.y;
  const auto bytes = static_cast<int64_t>(size_of(dots.type));
  float* const sums = dots.sums;
  const int64_t x_row = dots.x_row;
  dots.x_row = rows_.stride * x_row;
  dots.x_tap_row = rows_.dilation * x_row;
  dots.taps = columns_.kernel;
  dots.begin = begin_.data();
  dots.end = end_.data();
  dots.start = -columns_.pad_lo - dots.start;
  dots.step = columns_.stride;
  dots.dilation = columns_.dilation;
  const auto add_part = [&](int64_t first_tap, int64_t count, const Range& part) {
    if (part.size() <= 0) return;
    dots.x = x + (position(rows_, part.begin, first_tap) - x_first) * x_row * bytes;
    dots.y = y + (part.begin - rows.begin) * dots.y_row * bytes;
    dots.rows = part.size();
    dots.tap_rows = count;
    dots.sums = sums + first_tap * columns_.kernel * lanes;
    kernels::cpu::depthwise_dots(dots);
  };
  const int64_t together = kernels::cpu::depthwise_tap_rows(columns_.kernel);
  for (int64_t tap = 0; tap < rows_.kernel; tap += together) {
    const int64_t tap_rows = std::min(together, rows_.kernel - tap);
    Range common = rows;
    for (int64_t i = tap; i < tap + tap_rows; ++i)
      common = overlap(common, live_rows_[static_cast<size_t>(i)]);
    add_part(tap, tap_rows, common);
    for (int64_t i = tap; i < tap + tap_rows; ++i) {
      const Range live = overlap(rows, live_rows_[static_cast<size_t>(i)]);
      if (common.size() == 0) {
        add_part(i, 1, live);
      } else {
        add_part(i, 1, {live.begin, common.begin});
        add_part(i, 1, {common.end, live.end});
      }
    }
  }
}

}  // namespace retrograd::engines::cpu
