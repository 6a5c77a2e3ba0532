// SPDX-License-Identifier: Apache-2.0
// Strips: [image][channel][pixel]; turned over, [channel][pixel][image] where images are rows of tiles, or
// [image][pixel][channel] for tile registers. Plain channels that lie side by side stay so: [image][pixel]
// [channel], or [pixel][image][channel] where images are rows of tiles.
#include "engines/cpu/dense/dense_sources.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/layout/row_copy.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;

// Of a strip for all tasks that one of them turns over, so that many can.
constexpr int64_t kMostTurnedChannels = 32;

// From place to place with channels side by side: an odd number of lines, so that places do not share sets of
// L1.
int64_t pitch(int64_t channels) {
  constexpr int64_t kLineFloats = 16;
  return (ceil_div(channels, kLineFloats) | 1) * kLineFloats;
}

// A call of memcpy takes longer.
void copy_short(const std::byte* from, int64_t bytes, float* to) {
  constexpr int64_t kChunk = 32;
  auto* const out = reinterpret_cast<std::byte*>(to);
  if (bytes < kChunk) {
    std::memcpy(out, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i + kChunk < bytes; i += kChunk) std::memcpy(out + i, from + i, kChunk);
  std::memcpy(out + bytes - kChunk, from + bytes - kChunk, kChunk);
}

}  // namespace

DenseSources::DenseSources(const ConvPass& pass, const DenseBlocking& cut, const CellPass& cells)
    : pass_(pass),
      cut_(cut),
      partner_(is_forward(pass) ? cells.x : cells.y),
      together_(cells.together),
      tiles_(cells.tiles),
      rest_(cells.rest),
      judges_(cells.type == kernels::cpu::CellType::kBf16 && partner_ != 0 &&
              (cells.together || cut.by_place)),
      type_(cells.type),
      piece_(cut.channels_per_block) {
  if (in_place()) return;
  const bool shares = cut_.shares_strips;
  if (shares)
    shared_bytes_ = part_bytes<float>(cut_.grid.boxes[0] * pass_.groups * blocks() * shared_floats());
  if (cut_.by_place) {
    if (!shares) strip_bytes_ = part_bytes<float>(shared_floats());
    return;
  }
  // For tile registers one image is turned over after the other.
  const int64_t floats = std::max<int64_t>((tiles_ ? 1 : cut_.grid.box[0]) * cut_.strip_plane(), 1);
  if (shares && turns())
    piece_ = std::clamp<int64_t>(cut_.room.l2 / 4 / floats, 1, std::min(piece_, kMostTurnedChannels));
  if (!shares || turns()) strip_bytes_ = part_bytes<float>(floats * piece_);
  if (!shares && turns()) turned_bytes_ = part_bytes<float>(shared_floats());
}

// Of a strip that all tasks share.
int64_t DenseSources::shared_floats() const {
  return cut_.grid.box[0] * cut_.strip_plane() *
         (tiles_ || cut_.by_place ? pitch(cut_.channels_per_block) : cut_.channels_per_block);
}

DenseSource DenseSources::at(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                             float* shared) const {
  if (in_place()) {
    const DenseSource source = find(bindings, task, first);
    if (judges_) task.sound &= are_large(task, source, channels);
    return source;
  }
  if (!cut_.shares_strips) return load(bindings, task, first, channels, channels);
  const float* strip = shared_strip(task, first, shared);
  if (cut_.by_place) return placed(strip, task.box.size[0], channels);
  return turns() ? turned(strip, task.box.size[0], channels) : in_strip(strip, channels);
}

int64_t DenseSources::blocks() const { return ceil_div(source_channels(pass_), cut_.channels_per_block); }
int64_t DenseSources::pieces() const { return ceil_div(cut_.channels_per_block, piece_); }
int64_t DenseSources::shared_pieces() const {
  return cut_.shares_strips ? cut_.grid.boxes[0] * pass_.groups * blocks() * pieces() : 0;
}
int64_t DenseSources::task_of(int64_t index) const {
  const int64_t tasks_of_images = cut_.grid.count() / cut_.grid.boxes[0] * cut_.m_blocks;
  return index / (blocks() * pieces()) * tasks_of_images;
}

void DenseSources::share(const Bindings& bindings, DenseTask& task, int64_t index, float* shared) const {
  const int64_t first = index / pieces() % blocks() * cut_.channels_per_block;
  const int64_t channels = std::min(cut_.channels_per_block, source_channels(pass_) - first);
  const int64_t c = index % pieces() * piece_;
  if (c >= channels) return;
  float* const strip = shared_strip(task, first, shared);
  if (turns())
    task.turned = strip + c * turned(strip, task.box.size[0], channels).channel;
  else
    task.strip = strip;
  load(bindings, task, first + c, std::min(piece_, channels - c), channels);
}

float* DenseSources::shared_strip(const DenseTask& task, int64_t first, float* shared) const {
  const int64_t box = task.box.first[0] / cut_.grid.box[0], block = first / cut_.channels_per_block;
  return shared + ((task.group * cut_.grid.boxes[0] + box) * blocks() + block) * shared_floats();
}

int64_t DenseSources::channel_at(const DenseTask& task, int64_t first) const {
  const int64_t channels = source_channels(pass_), step = source_of(pass_).strides[1];
  return task.group * (channels * step - (rest_ ? partner_ : 0)) + first * step;
}

DenseSource DenseSources::find(const Bindings& bindings, const DenseTask& task, int64_t first) const {
  const PassTensor& tensor = source_of(pass_);
  const auto& s = tensor.strides;
  const auto* base = static_cast<const float*>(bindings[tensor.operand]);
  const int64_t at = task.box.first[0] * s[0] + channel_at(task, first) + task.start[0] * s[2] +
                     task.start[1] * s[3] + task.start[2] * s[4];
  return {base + at, s[0], s[1], {s[2], s[3], s[4]}};
}

bool DenseSources::are_large(const DenseTask& task, const DenseSource& source, int64_t channels) const {
  std::array<int64_t, 3> begin, end;  // of the strip, inside the tensor
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t size = cut_.phases.front().axes[axis].source_size;
    begin[axis] = std::clamp<int64_t>(-task.start[axis], 0, cut_.strip[axis]);
    end[axis] = std::clamp(size - task.start[axis], begin[axis], cut_.strip[axis]);
  }
  bool large = true;
  for (int64_t n = 0; n < task.box.size[0]; ++n)
    for (int64_t z = begin[0]; z < end[0]; ++z)
      for (int64_t y = begin[1]; y < end[1]; ++y)
        large &= kernels::cpu::judge_cells(source.first + n * source.image + z * source.axis[0] +
                                               y * source.axis[1] + begin[2] * source.axis[2],
                                           source.axis[2], end[2] - begin[2], channels, type_)
                     .large;
  return large;
}

DenseSource DenseSources::load(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                               int64_t of_strip) const {
  if (cut_.by_place) return load_places(bindings, task, first, channels);
  const PassTensor& tensor = source_of(pass_);
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  StripShape shape{.channels = channels, .start = task.start, .extent = cut_.strip};
  for (size_t axis = 0; axis < 3; ++axis) shape.size[axis] = cut_.phases.front().axes[axis].source_size;
  const int64_t image = channels * cut_.strip_plane(), images = task.box.size[0];
  if (const float* plain = whole_planes(bindings, task, first)) {
    if (judges_)
      task.sound &= kernels::cpu::judge_cells(plain, tensor.strides[0], images, image, type_).large;
    kernels::cpu::transpose(plain, tensor.strides[0], task.turned, images, images, image);
    return turned(task.turned, images, of_strip);
  }
  for (int64_t n = 0; n < images; ++n) {
    const int64_t at = (task.box.first[0] + n) * tensor.strides[0] + channel_at(task, first);
    const std::byte* from = static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes;
    if (tiles_) {
      task.sound &= load_strip_of_cells(from, shape, has_rest(first, channels), task.strip);
      const int64_t plane = cut_.strip_plane(), row = pitch(of_strip);
      kernels::cpu::transpose(task.strip, plane, task.turned + n * plane * row, row, channels, plane);
    } else if (partner_ != 0 && !together_) {
      task.sound &= load_strip_of_cells(from, shape, has_rest(first, channels), task.strip + n * image);
    } else {
      float* const strip = task.strip + n * image;
      load_strip(tensor, pass_.rounding, from, shape, strip);
      if (judges_) task.sound &= kernels::cpu::judge_cells(strip, 0, 1, image, type_).large;
    }
  }
  if (!turns()) return in_strip(task.strip, channels);
  if (!tiles_) kernels::cpu::transpose(task.strip, image, task.turned, images, images, image);
  return turned(task.turned, images, of_strip);
}

bool DenseSources::load_strip_of_cells(const std::byte* from, StripShape shape, bool rest, float* out) const {
  const PassTensor& tensor = source_of(pass_);
  if (!rest) return load_cell_strip(tensor, partner_, from, shape, out);
  const int64_t paired = std::exchange(shape.channels, 1) - 1;
  bool sound = load_cell_strip(
      tensor, kNoPartner, from + paired * tensor.strides[1] * static_cast<int64_t>(size_of(tensor.dtype)),
      shape, out + paired * shape.plane());
  shape.channels = paired;
  if (paired > 0) sound &= load_cell_strip(tensor, partner_, from, shape, out);
  return sound;
}

DenseSource DenseSources::load_places(const Bindings& bindings, DenseTask& task, int64_t first,
                                      int64_t channels) const {
  const PassTensor& tensor = source_of(pass_);
  const auto& s = tensor.strides;
  const auto& [depth, height, length] = cut_.strip;
  const DenseSource strip = placed(task.strip, task.box.size[0], channels);
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  const auto* base = static_cast<const std::byte*>(bindings[tensor.operand]) +
                     (task.box.first[0] * s[0] + channel_at(task, first)) * bytes;
  const int64_t numbers = 2 * channels - (has_rest(first, channels) ? 1 : 0);  // of cells not yet paired
  const auto size = [&](size_t axis) { return cut_.phases.front().axes[axis].source_size; };
  const auto inside = [&](size_t axis, int64_t place) { return place >= 0 && place < size(axis); };
  // Places of a row that are there; zeros stand for the others.
  const int64_t begin = std::clamp<int64_t>(-task.start[2], 0, length);
  const int64_t end = std::clamp<int64_t>(size(2) - task.start[2], begin, length);
  for (int64_t n = 0; n < task.box.size[0]; ++n)
    for (int64_t z = 0; z < depth; ++z)
      for (int64_t y = 0; y < height; ++y) {
        float* const to = task.strip + n * strip.image + z * strip.axis[0] + y * strip.axis[1];
        const int64_t d = task.start[0] + z, h = task.start[1] + y;
        const bool there = inside(0, d) && inside(1, h) && begin < end;
        if (there) {
          const std::byte* const from =
              base + (n * s[0] + d * s[2] + h * s[3] + (task.start[2] + begin) * s[4]) * bytes;
          float* const out = to + begin * strip.axis[2];
          if (partner_ == 0 || together_)
            kernels::cpu::copy_rows(reinterpret_cast<const float*>(from), s[4], out, strip.axis[2],
                                    end - begin, channels);
          else
            for (int64_t x = 0; x < end - begin; ++x) {
              out[x * strip.axis[2] + channels - 1] = 0;
              copy_short(from + x * s[4] * bytes, numbers * bytes, out + x * strip.axis[2]);
            }
          if (judges_)
            task.sound &= kernels::cpu::judge_cells(to + begin * strip.axis[2], strip.axis[2], end - begin,
                                                    channels, type_)
                              .large;
        }
        for (int64_t x = 0; x < length; ++x)
          if (!there || x < begin || x >= end) std::fill_n(to + x * strip.axis[2], channels, 0.0F);
      }
  return strip;
}

DenseSource DenseSources::placed(const float* strip, int64_t images, int64_t channels) const {
  const int64_t row = pitch(channels), w = cut_.images_inside ? images * row : row, h = cut_.strip[2] * w,
                d = cut_.strip[1] * h;
  return {strip, cut_.images_inside ? row : cut_.strip[0] * d, 1, {d, h, w}};
}

DenseSource DenseSources::in_strip(const float* strip, int64_t channels) const {
  const int64_t h = cut_.strip[2], d = cut_.strip[1] * h;
  return {strip, channels * cut_.strip_plane(), cut_.strip_plane(), {d, h, 1}};
}

DenseSource DenseSources::turned(const float* strip, int64_t images, int64_t channels) const {
  if (tiles_) {
    const int64_t w = pitch(channels), h = cut_.strip[2] * w, d = cut_.strip[1] * h;
    return {strip, cut_.strip[0] * d, 1, {d, h, w}};
  }
  const int64_t h = cut_.strip[2] * images, d = cut_.strip[1] * h;
  return {strip, 1, cut_.strip[0] * d, {d, h, images}};
}

// The source where it is one block [channel][place] of plain FP32 for each image, which can be turned over
// without a copy; else null.
const float* DenseSources::whole_planes(const Bindings& bindings, const DenseTask& task,
                                        int64_t first) const {
  const PassTensor& tensor = source_of(pass_);
  const auto& s = tensor.strides;
  if (!cut_.images_inside || !is_plain(tensor, pass_.rounding)) return nullptr;
  int64_t stride = 1;
  for (size_t axis = 3; axis-- > 0;) {
    const int64_t size = cut_.phases.front().axes[axis].source_size;
    if (task.start[axis] != 0 || cut_.strip[axis] != size || (size > 1 && s[axis + 2] != stride))
      return nullptr;
    stride *= size;
  }
  if (s[1] != stride) return nullptr;
  return static_cast<const float*>(bindings[tensor.operand]) + task.box.first[0] * s[0] +
         channel_at(task, first);
}

}  // namespace retrograd::engines::cpu
