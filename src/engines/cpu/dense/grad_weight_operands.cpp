// SPDX-License-Identifier: Apache-2.0
// Panels are turned over straight from the caller's memory where that is plain FP32.
#include "engines/cpu/dense/grad_weight_operands.h"

#include <algorithm>

#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/layout/row_copy.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {

using problem::PassTensor;

namespace {

constexpr int64_t kLineFloats = 16;

// From one channel to the next where they are turned over: not all in the same lines of L1.
int64_t turned_pitch(int64_t places) {
  constexpr int64_t kUnluckyFloats = 256;
  return places % kUnluckyFloats == 0 ? places + kLineFloats : places;
}

}  // namespace

GradWeightOperands::GradWeightOperands(const CellPass& cells, const GradWeightBlocking& cut)
    : cells_(cells), cut_(cut), copies_rows_(cut.turns_rows || !is_plain(rows(), pass().rounding)) {
  const int64_t positions = count_of(cut_.grid.box);
  const int64_t x_places = cut_.grid.box[0] * cut_.extent[0] * cut_.extent[1] * cut_.extent[2];
  const int64_t lane_places = cut_.lanes_are_x ? x_places : positions;
  const int64_t row_places = cut_.lanes_are_x ? positions : x_places;
  panel_bytes_ = part_bytes<float>(lane_places * cut_.width);
  raw_bytes_ = part_bytes<float>(lane_places / cut_.grid.box[0] * cut_.width);
  if (cells_.tiles)
    raw_bytes_ = std::max(raw_bytes_, part_bytes<float>(row_places / cut_.grid.box[0] * cut_.row_block));
  const int64_t copied = row_places + (cut_.turns_rows ? cut_.grid.box[0] * kLineFloats : 0);
  copy_bytes_ = copies_rows_ ? part_bytes<float>(copied * cut_.row_block) : 0;
}

GradWeightOperands::Part GradWeightOperands::part_of(bool of_x, const BoxGrid::Box& box) const {
  Part part{.first_image = box.first[0], .images = box.size[0]};
  for (size_t axis = 0; axis < 3; ++axis) {
    const problem::Window& w = pass().axes[axis];
    const int64_t first = box.first[axis + 1], size = box.size[axis + 1];
    const int64_t begin = first * w.stride - w.pad_lo;
    const int64_t end = (first + size - 1) * w.stride - w.pad_lo + (w.kernel - 1) * w.dilation + 1;
    part.start[axis] = of_x ? std::clamp<int64_t>(begin, 0, w.x) : first;
    part.size[axis] = of_x ? std::clamp<int64_t>(end, part.start[axis], w.x) - part.start[axis] : size;
  }
  return part;
}

GradWeightLayout GradWeightOperands::pack_lanes(const Bindings& bindings, GradWeightTask& task,
                                                const BoxGrid::Box& box) const {
  Part part = part_of(cut_.lanes_are_x, box);
  const PassTensor& t = lanes();
  const auto& s = t.strides;
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  const int64_t channels = cut_.lanes_are_x ? pass().x_channels_per_group() : pass().y_channels_per_group();
  const auto* base = static_cast<const std::byte*>(bindings[t.operand]) +
                     (task.group * channels + task.lane_first) * s[1] * bytes;
  if (cut_.lanes_stay && task.lane_count == task.width)
    return {reinterpret_cast<const float*>(base) + part.first_image * s[0], s[0], 1, {s[2], s[3], s[4]}, {}};
  if (task.lane_count < task.width) std::fill_n(task.panel, part.images * part.plane() * task.width, 0.0F);
  float* out = task.panel;
  for (int64_t n = 0; n < part.images; ++n, out += part.plane() * task.width) {
    part.partner = partner(t, part.first_image + n);
    task.sound &= pack_image(t, base + (part.first_image + n) * s[0] * bytes, part, task, out);
  }
  const int64_t h = part.size[2] * task.width;
  return {task.panel, part.plane() * task.width, 1, {part.size[1] * h, h, task.width}, part.start};
}

int64_t GradWeightOperands::partner(const PassTensor& t, int64_t image) const {
  if (cells_.rest && image == pass().batch - 1) return kNoPartner;
  return &t == &pass().x ? cells_.x : cells_.y;
}

bool GradWeightOperands::pack_image(const PassTensor& t, const std::byte* source, const Part& part,
                                    const GradWeightTask& task, float* out) const {
  const int64_t count = task.lane_count, width = task.width;
  const auto& s = t.strides;
  const auto& [depth, height, length] = part.size;
  if (!is_plain(t, pass().rounding) && side_by_side(t, part))
    return load_places(t, source, part, count, width, out);
  if (!is_plain(t, pass().rounding) || (s[1] != 1 && s[4] != 1)) {
    const bool sound = load(t, source, part, count, task.raw);
    kernels::cpu::transpose(task.raw, part.plane(), out, width, count, part.plane());
    return sound;
  }
  const auto* plain = reinterpret_cast<const float*>(source) + part.start[0] * s[2] + part.start[1] * s[3] +
                      part.start[2] * s[4];
  // Rows that follow each other without a gap are one row, and so are planes.
  const bool rows_touch = s[4] == 1 && s[1] != 1 && (height == 1 || s[3] == length);
  const bool planes_touch = rows_touch && (depth == 1 || s[2] == height * length);
  const int64_t run = planes_touch ? part.plane() : rows_touch ? height * length : length;
  for (int64_t z = 0; z < (planes_touch ? 1 : depth); ++z)
    for (int64_t y = 0; y < (rows_touch ? 1 : height); ++y) {
      const float* row = plain + z * s[2] + y * s[3];
      if (s[1] == 1)
        kernels::cpu::copy_rows(row, s[4], out, width, length, count);
      else
        kernels::cpu::transpose(row, s[1], out, width, count, run);
      out += run * width;
    }
  return true;
}

// A strip of numbers, or of cells; false where a cell cannot hold its numbers.
bool GradWeightOperands::load(const PassTensor& t, const std::byte* source, const Part& part,
                              int64_t channels, float* out) const {
  if (places(t).shift != 0) return load_paired_strip(t, source, part, channels, out);
  const StripShape shape{.channels = channels,
                         .start = part.start,
                         .extent = part.size,
                         .size = {INT64_MAX, INT64_MAX, INT64_MAX}};
  if (part.partner != 0) return load_cell_strip(t, part.partner, source, shape, out);
  load_strip(t, pass().rounding, source, shape, out);
  return true;
}

// The same of paired places: row by row, and all rows of a plane at once that lie together and are there
// whole.
bool GradWeightOperands::load_paired_strip(const PassTensor& t, const std::byte* source, const Part& part,
                                           int64_t channels, float* out) const {
  const PairedPlaces& paired = places(t);
  const auto& s = t.strides;
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  const auto& [depth, height, length] = part.size;
  std::array<int64_t, 3> start = part.start;
  start[paired.axis] -= paired.pad;
  const bool joined = paired.axis == 0 && s[3] == length * s[4];
  const bool rows_join = paired.axis == 1 && s[3] == length * s[4];
  // Rows at which both numbers are inside.
  const int64_t whole_begin = std::max<int64_t>(0, -start[1]);
  const int64_t whole_end = std::min(height, paired.size - paired.shift - start[1]);
  bool sound = true;
  for (int64_t d = 0; d < depth; ++d)
    for (int64_t h = 0, rows = 1; h < height; h += rows) {
      rows = joined ? height : rows_join && h >= whole_begin && h + 1 < whole_end ? whole_end - h : 1;
      const std::array<int64_t, 3> at{start[0] + d, start[1] + h, start[2]};
      sound &= load_paired(t, paired, source + (at[0] * s[2] + at[1] * s[3] + at[2] * s[4]) * bytes,
                           at[paired.axis], paired.axis == 2 ? 1 : 0, s[4], rows * length, channels, out,
                           part.plane());
      out += rows * length;
    }
  return sound;
}

// Channels of a place that lie together, and places that do not: nothing needs turning over.
bool GradWeightOperands::side_by_side(const PassTensor& t, const Part& part) {
  return t.strides[1] == 1 && (t.strides[4] != 1 || part.plane() == 1);
}

// out[place][pitch] of `count` such channels, numbers or cells.
bool GradWeightOperands::load_places(const PassTensor& t, const std::byte* source, const Part& part,
                                     int64_t count, int64_t pitch, float* out) const {
  const PairedPlaces& paired = places(t);
  std::array<int64_t, 3> start = part.start;
  if (paired.shift != 0) start[paired.axis] -= paired.pad;
  const auto& s = t.strides;
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  bool sound = true;
  const int64_t length = part.size[2];
  for (int64_t d = 0; d < part.size[0]; ++d)
    for (int64_t h = 0; h < part.size[1]; ++h, out += length * pitch) {
      const std::array<int64_t, 3> at{start[0] + d, start[1] + h, start[2]};
      const std::byte* from = source + (at[0] * s[2] + at[1] * s[3] + at[2] * s[4]) * bytes;
      if (paired.shift != 0)
        sound &= load_paired_rows(t, paired, from, at[paired.axis], paired.axis == 2 ? 1 : 0, length, count,
                                  out, pitch);
      else if (part.partner != 0)
        sound &= load_cell_rows(t.dtype, from, part.partner, s[4], length, count, out, pitch);
      else
        load_rows(t.dtype, pass().rounding, from, s[4], length, count, out, pitch);
    }
  return sound;
}

// out[channel][place] of plain channels that lie side by side.
void GradWeightOperands::turn_over(const PassTensor& t, const float* source, const Part& part,
                                   int64_t channels, float* out) {
  const auto& s = t.strides;
  const auto& [depth, height, length] = part.size;
  const bool rows_touch = height == 1 || s[3] == length * s[4];
  const bool planes_touch = rows_touch && (depth == 1 || s[2] == height * length * s[4]);
  const int64_t run = planes_touch ? part.plane() : rows_touch ? height * length : length;
  for (int64_t z = 0; z < (planes_touch ? 1 : depth); ++z)
    for (int64_t y = 0; y < (rows_touch ? 1 : height); ++y, out += run)
      kernels::cpu::transpose(
          source + (part.start[0] + z) * s[2] + (part.start[1] + y) * s[3] + part.start[2] * s[4], s[4], out,
          turned_pitch(part.plane()), run, channels);
}

GradWeightLayout GradWeightOperands::find_rows(const Bindings& bindings, GradWeightTask& task,
                                               const BoxGrid::Box& box) const {
  Part part = part_of(!cut_.lanes_are_x, box);
  const PassTensor& t = rows();
  const auto& s = t.strides;
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  const int64_t channels = cut_.lanes_are_x ? pass().y_channels_per_group() : pass().x_channels_per_group();
  const auto* base = static_cast<const std::byte*>(bindings[t.operand]) +
                     (part.first_image * s[0] + (task.group * channels + task.row_first) * s[1]) * bytes;
  if (!copies_rows_) return {reinterpret_cast<const float*>(base), s[0], s[1], {s[2], s[3], s[4]}, {}};
  if (cut_.turns_rows) {
    const int64_t pitch = turned_pitch(part.plane()), turned = task.row_count * pitch;
    for (int64_t n = 0; n < part.images; ++n)
      turn_over(t, reinterpret_cast<const float*>(base) + n * s[0], part, task.row_count,
                task.copy + n * turned);
    return {task.copy, turned, pitch, {part.size[1] * part.size[2], part.size[2], 1}, part.start};
  }
  const int64_t image = task.row_count * part.plane();
  if (side_by_side(t, part) && !cells_.tiles) {
    const int64_t pitch = task.row_count, row = part.size[2] * pitch;
    for (int64_t n = 0; n < part.images; ++n) {
      part.partner = partner(t, part.first_image + n);
      task.sound &= load_places(t, base + n * s[0] * bytes, part, pitch, pitch, task.copy + n * image);
    }
    return {task.copy, image, 1, {part.size[1] * row, row, pitch}, part.start};
  }
  for (int64_t n = 0; n < part.images; ++n) {
    const std::byte* from = base + n * s[0] * bytes;
    part.partner = partner(t, part.first_image + n);
    if (side_by_side(t, part)) {
      task.sound &= load_places(t, from, part, task.row_count, task.row_count, task.raw);
      kernels::cpu::transpose(task.raw, task.row_count, task.copy + n * image, part.plane(), part.plane(),
                              task.row_count);
    } else {
      task.sound &= load(t, from, part, task.row_count, task.copy + n * image);
    }
  }
  return {task.copy, image, part.plane(), {part.size[1] * part.size[2], part.size[2], 1}, part.start};
}

}  // namespace retrograd::engines::cpu
