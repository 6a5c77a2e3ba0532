// SPDX-License-Identifier: Apache-2.0
// Copying boxes apart by residues.
#include "engines/cpu/residue_strips.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/rows.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kFloatsPerLine = 16;

}  // namespace

ResidueStrips::ResidueStrips(const std::array<StripAxis, 3>& axes, const Positions& box)
    : axes_(axes), images_(box[0]) {
  int64_t residues = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const StripAxis& a = axes[axis];
    extent_[axis] = box[axis + 1] + (a.highest_offset - a.lowest_offset) / a.step;
    residues *= a.step;
  }
  channel_pitch_ = (ceil_div(residues * volume(), kFloatsPerLine) | 1) * kFloatsPerLine;
}

int64_t ResidueStrips::offset_of(const std::array<int64_t, 3>& offsets) const {
  int64_t residue = 0, place = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t from_lowest = offsets[axis] - axes_[axis].lowest_offset;
    residue = residue * axes_[axis].step + from_lowest % axes_[axis].step;
    place = place * extent_[axis] + from_lowest / axes_[axis].step;
  }
  return residue * volume() + place;
}

void ResidueStrips::load(const problem::PassTensor& tensor, OperandRounding rounding,
                         const std::byte* channel, int64_t channels, const BoxGrid::Box& box,
                         float* out) const {
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  const int64_t plane = extent_[0] * extent_[1] * extent_[2];
  // The places of one residue are a tensor of their own, with strides `step` times as long.
  problem::PassTensor places = tensor;
  for (size_t axis = 0; axis < 3; ++axis) places.strides[axis + 2] *= axes_[axis].step;
  for (int64_t c = 0; c < channels; ++c, out += channel_pitch_) {
    float* strip = out;
    std::array<int64_t, 3> residue{};
    for (residue[0] = 0; residue[0] < axes_[0].step; ++residue[0])
      for (residue[1] = 0; residue[1] < axes_[1].step; ++residue[1])
        for (residue[2] = 0; residue[2] < axes_[2].step; ++residue[2]) {
          StripShape shape{.channels = 1, .extent = extent_};
          int64_t at = c * tensor.strides[1] + box.first[0] * tensor.strides[0];
          for (size_t axis = 0; axis < 3; ++axis) {
            const StripAxis& a = axes_[axis];
            const int64_t place = box.first[axis + 1] * a.step + a.lowest_offset + residue[axis];
            shape.start[axis] = floor_div(place, a.step);
            const int64_t within = place - shape.start[axis] * a.step;
            shape.size[axis] = ceil_div(a.size - within, a.step);
            at += within * tensor.strides[axis + 2];
          }
          for (int64_t n = 0; n < box.size[0]; ++n, strip += plane)
            load_strip(places, rounding, channel + (at + n * tensor.strides[0]) * bytes, shape, strip);
          std::fill_n(strip, (images_ - box.size[0]) * plane, 0.0F);
          strip += (images_ - box.size[0]) * plane;
        }
    std::fill(strip, out + channel_pitch_, 0.0F);
  }
}

}  // namespace retrograd::engines::cpu
