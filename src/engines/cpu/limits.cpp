// SPDX-License-Identifier: Apache-2.0
// The limits of limits.h, in arithmetic that cannot overflow.
#include "engines/cpu/limits.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/boxes.h"

namespace retrograd::engines::cpu {
namespace {

using problem::Window;

constexpr int64_t kMostElements = int64_t{1} << 40;  // of one operand: 4 TiB of FP32
constexpr int64_t kMostTaps = int64_t{1} << 16;      // 255 × 255
constexpr int64_t kMostStripFloats = int64_t{1} << 24;
constexpr int64_t kMostBoxPositions = 65536;
constexpr int64_t kMostVolumeFloats = int64_t{1} << 24;
constexpr int64_t kMostPhases = 4096;
constexpr int64_t kMostListedTaps = int64_t{1} << 22;

bool exceeds(const Checked& value, int64_t limit) { return value.get().value_or(INT64_MAX) > limit; }

// An upper bound of the strip of one channel of a box of positions.
Checked strip_floats(const problem::ConvPass& p, const Positions& box) {
  Checked floats = box[0];
  for (size_t axis = 0; axis < 3; ++axis) {
    const Window& w = p.axes[axis];
    const Checked span = (Checked(w.kernel) - 1) * w.dilation;
    const Checked extent = p.kind == problem::ConvPassKind::kGradInput
                               ? Checked(box[axis + 1]) + span.get().value_or(INT64_MAX) / w.stride + 2
                               : Checked(box[axis + 1]) * w.stride + span + 1;
    floats = floats * extent;
  }
  return floats;
}

bool strips_fit(const problem::ConvPass& p) {
  const bool phases = p.kind == problem::ConvPassKind::kGradInput;
  Positions total{p.batch, 1, 1, 1};
  for (size_t axis = 0; axis < 3; ++axis)
    total[axis + 1] = phases ? ceil_div(p.axes[axis].x, p.axes[axis].stride) : p.axes[axis].y;
  for (int64_t& count : total) count = std::max<int64_t>(count, 1);
  // Nearly always even one box of all positions would do: every candidate asks, so it should cost little.
  if (!exceeds(strip_floats(p, total), kMostStripFloats)) return true;
  return !exceeds(strip_floats(p, cut_into_boxes(total, kMostBoxPositions).box), kMostStripFloats);
}

}  // namespace

std::optional<Reason> unfit_weight(const problem::ConvPass& p) {
  Checked elements = Checked(p.y_channels) * p.x_channels_per_group();
  for (const Window& window : p.axes) {
    elements = elements * window.kernel;
    if (window.kernel > kMostTaps) return "the kernel has more than 2^16 taps";
  }
  if (exceeds(elements, kMostElements)) return "an operand has more than 2^40 elements";
  return std::nullopt;
}

std::optional<Reason> unfit_size(const problem::ConvPass& p) {
  if (p.batch == 0 || p.x_channels == 0 || p.y_channels == 0) return "there is nothing to add";
  if (const auto reason = unfit_weight(p)) return reason;
  Checked x = Checked(p.batch) * p.x_channels, y = Checked(p.batch) * p.y_channels, taps = 1;
  for (const Window& window : p.axes) {
    x = x * window.x;
    y = y * window.y;
    taps = taps * window.kernel;
    if (window.x == 0 || window.y == 0 || window.kernel == 0) return "there is nothing to add";
  }
  if (exceeds(x, kMostElements) || exceeds(y, kMostElements)) return "an operand has more than 2^40 elements";
  if (exceeds(taps, kMostTaps)) return "the kernel has more than 2^16 taps";
  if (!strips_fit(p)) return "a box would read more than 2^24 places of a channel";
  return std::nullopt;
}

std::optional<Reason> unfit_size(const problem::AvgPoolPass& p) {
  Checked x = Checked(p.batch) * p.channels, volume = 1;
  for (const problem::PoolWindow& window : p.axes) {
    x = x * window.x;
    volume = volume * window.y;
    if (window.kernel > kMostTaps) return "the kernel is longer than 2^16";
    if (window.x > kMostVolumeFloats) return "an axis is longer than 2^24";
    if (window.x == 0 || window.y == 0) return "there is nothing to add";
  }
  if (exceeds(x, kMostElements)) return "an operand has more than 2^40 elements";
  if (exceeds(volume, kMostVolumeFloats)) return "a volume has more than 2^24 outputs";
  return std::nullopt;
}

std::optional<Reason> unfit_phases(const problem::ConvPass& p) {
  if (p.kind != problem::ConvPassKind::kGradInput) return std::nullopt;
  // One phase for each residue; a stride far beyond the kernel makes phases that hold next to nothing.
  Checked phases = 1;
  for (const Window& w : p.axes) phases = phases * std::min(w.stride, w.x);
  if (exceeds(phases, kMostPhases)) return "the strides make more than 4096 phases";
  for (const Window& w : p.axes) phases = phases * w.kernel;
  if (exceeds(phases, kMostListedTaps)) return "the taps of all phases make a list of more than 2^22";
  return std::nullopt;
}

}  // namespace retrograd::engines::cpu
