// SPDX-License-Identifier: Apache-2.0
// Copying boxes apart by residues.
#include "engines/cpu/few_channels/residue_strips.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/layout/row_copy.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kFloatsPerLine = 16;
constexpr int64_t kChunkFloats = 512;  // of a row that is converted before it is parted

// part_rows of rows that are no FP32 yet; `in` is place 0 of the first.
void part_converted(DType dtype, OperandRounding rounding, const std::byte* in,
                    const kernels::cpu::PartedRows& rows) {
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  alignas(64) std::array<float, kChunkFloats> values;
  const int64_t step = kChunkFloats / rows.ways;
  for (int64_t r = 0; r < rows.rows; ++r)
    for (int64_t j = 0; j < rows.count; j += step) {
      kernels::cpu::PartedRows chunk = rows;
      const int64_t place = j * rows.ways;
      chunk.rows = 1;
      chunk.count = std::min(step, rows.count - j);
      chunk.begin = std::clamp<int64_t>(rows.begin - place, 0, chunk.count * rows.ways);
      chunk.end = std::clamp(rows.end - place, chunk.begin, chunk.count * rows.ways);
      chunk.in = values.data();
      chunk.out = rows.out + r * rows.out_stride + j;
      chunk.ahead = 0;
      load_row(dtype, rounding, in + (r * rows.in_stride + place + chunk.begin) * bytes, 1,
               chunk.end - chunk.begin, values.data() + chunk.begin);
      kernels::cpu::part_rows(chunk);
    }
}

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
    const int64_t from_lowest = offsets[axis] - axes_[axis].lowest_offset, step = axes_[axis].step;
    // Divisions are what planning a tiny pass would wait for.
    const int64_t quotient = step == 1 ? from_lowest : from_lowest / step;
    residue = residue * step + from_lowest - quotient * step;
    place = place * extent_[axis] + quotient;
  }
  return residue * volume() + place;
}

ResidueStrips::Span ResidueStrips::span(size_t axis, int64_t first, int64_t residue) const {
  const StripAxis& a = axes_[axis];
  const int64_t place = first * a.step + a.lowest_offset + residue, start = floor_div(place, a.step);
  const int64_t within = place - start * a.step;
  return {start, within, ceil_div(a.size - within, a.step)};
}

void ResidueStrips::load(const problem::PassTensor& tensor, OperandRounding rounding,
                         const std::byte* channel, int64_t channels, const BoxGrid::Box& box,
                         float* out) const {
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  const auto& s = tensor.strides;
  const int64_t plane = extent_[0] * extent_[1] * extent_[2], unused = (images_ - box.size[0]) * plane;
  const bool parted = axes_[2].step > 1 && axes_[2].step <= kChunkFloats && s[4] == 1;
  // The places of one residue are a tensor of their own, with strides `step` times as long.
  problem::PassTensor places = tensor;
  for (size_t axis = 0; axis < 3; ++axis) places.strides[axis + 2] *= axes_[axis].step;
  // Channels that lie together are read together.
  const int64_t at_once = is_channels_last(tensor) ? channels : 1;
  for (int64_t c = 0; c < channels; c += at_once, out += at_once * channel_pitch_) {
    float* strip = out;
    for (int64_t rd = 0; rd < axes_[0].step; ++rd)
      for (int64_t rh = 0; rh < axes_[1].step; ++rh) {
        const Span d = span(0, box.first[1], rd), h = span(1, box.first[2], rh);
        const int64_t at = c * s[1] + box.first[0] * s[0] + d.within * s[2] + h.within * s[3];
        if (parted) part_planes(tensor, rounding, channel + at * bytes, box, d, h, strip);
        for (int64_t rw = 0; rw < axes_[2].step; ++rw) {
          const Span w = span(2, box.first[3], rw);
          const StripShape shape{.channels = at_once,
                                 .channel_pitch = channel_pitch_,
                                 .start = {d.start, h.start, w.start},
                                 .extent = extent_,
                                 .size = {d.size, h.size, w.size}};
          for (int64_t n = 0; n < box.size[0]; ++n, strip += plane)
            if (!parted)
              load_strip(places, rounding, channel + (at + w.within * s[4] + n * s[0]) * bytes, shape, strip);
          for (int64_t i = 0; i < at_once; ++i) std::fill_n(strip + i * channel_pitch_, unused, 0.0F);
          strip += unused;
        }
      }
    for (int64_t i = 0; i < at_once; ++i)
      std::fill(strip + i * channel_pitch_, out + (i + 1) * channel_pitch_, 0.0F);
  }
}

void ResidueStrips::part_planes(const problem::PassTensor& tensor, OperandRounding rounding,
                                const std::byte* channel, const BoxGrid::Box& box, const Span& d,
                                const Span& h, float* out) const {
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  const StripAxis& w = axes_[2];
  const int64_t first = box.first[3] * w.step + w.lowest_offset, width = extent_[2];
  const int64_t row_stride = tensor.strides[3] * axes_[1].step;
  kernels::cpu::PartedRows rows{.in_stride = row_stride,
                                .way_stride = volume(),
                                .ways = w.step,
                                .out_stride = width,
                                .begin = std::clamp<int64_t>(-first, 0, width * w.step),
                                .count = width,
                                .ahead = tensor.strides[1]};
  rows.end = std::clamp(w.size - first, rows.begin, width * w.step);
  const int64_t top = std::clamp<int64_t>(-h.start, 0, extent_[1]);
  rows.rows = std::clamp(h.size - h.start, top, extent_[1]) - top;
  for (int64_t n = 0; n < box.size[0]; ++n)
    for (int64_t z = 0; z < extent_[0]; ++z, out += extent_[1] * width) {
      const bool inside = d.start + z >= 0 && d.start + z < d.size;
      const int64_t filled = inside ? rows.rows : 0, above = inside ? top : 0;
      for (int64_t way = 0; way < w.step; ++way) {
        float* area = out + way * rows.way_stride;
        std::fill_n(area, above * width, 0.0F);
        std::fill(area + (above + filled) * width, area + extent_[1] * width, 0.0F);
      }
      if (filled == 0) continue;
      const int64_t at = n * tensor.strides[0] + (d.start + z) * axes_[0].step * tensor.strides[2] +
                         (h.start + top) * row_stride + first;
      rows.out = out + top * width;
      if (is_plain(tensor, rounding)) {
        rows.in = reinterpret_cast<const float*>(channel) + at;
        kernels::cpu::part_rows(rows);
      } else {
        part_converted(tensor.dtype, rounding, channel + at * bytes, rows);
      }
    }
}

}  // namespace retrograd::engines::cpu
