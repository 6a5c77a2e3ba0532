// SPDX-License-Identifier: Apache-2.0
// Strips: [image][channel][place]; turned over, [channel][place][image] where images are rows of tiles, or
// [image][place][channel] for tile registers.
#include "engines/cpu/dense/dense_sources.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/dense/bf16_cells.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;

// From place to place for tile registers: an odd number of lines, so that places do not share sets of L1.
int64_t pitch(int64_t channels) {
  constexpr int64_t kLineFloats = 16;
  return (ceil_div(channels, kLineFloats) | 1) * kLineFloats;
}

}  // namespace

DenseSources::DenseSources(const ConvPass& pass, const DenseBlocking& cut, int64_t partner, bool tiles)
    : pass_(pass), cut_(cut), partner_(partner), tiles_(tiles) {
  if (in_place()) return;
  // For tile registers one image is turned over after the other.
  const int64_t images = tiles_ ? 1 : cut_.grid.box[0];
  if (!cut_.whole_images || turns())
    strip_bytes_ = part_bytes<float>(images * cut_.channels_per_block * cut_.plane());
  if (!cut_.whole_images && turns()) turned_bytes_ = part_bytes<float>(shared_floats());
  if (cut_.whole_images) shared_bytes_ = part_bytes<float>(strips() * shared_floats());
}

// Of a strip that all tasks share.
int64_t DenseSources::shared_floats() const {
  return cut_.grid.box[0] * cut_.plane() *
         (tiles_ ? pitch(cut_.channels_per_block) : cut_.channels_per_block);
}

DenseSource DenseSources::at(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                             float* shared) const {
  if (in_place()) return find(bindings, task, first);
  if (!cut_.whole_images) return load(bindings, task, first, channels);
  const float* strip = shared_strip(task, first, shared);
  return turns() ? turned(strip, task.box.size[0], channels) : in_strip(strip, channels);
}

int64_t DenseSources::blocks() const { return ceil_div(source_channels(pass_), cut_.channels_per_block); }
int64_t DenseSources::strips() const { return cut_.grid.count() * pass_.groups * blocks(); }
int64_t DenseSources::task_of(int64_t index) const { return index / blocks() * cut_.m_blocks; }

void DenseSources::share(const Bindings& bindings, DenseTask& task, int64_t index, float* shared) const {
  const int64_t first = index % blocks() * cut_.channels_per_block;
  (turns() ? task.turned : task.strip) = shared_strip(task, first, shared);
  load(bindings, task, first, std::min(cut_.channels_per_block, source_channels(pass_) - first));
}

float* DenseSources::shared_strip(const DenseTask& task, int64_t first, float* shared) const {
  const int64_t box = task.box.first[0] / cut_.grid.box[0], block = first / cut_.channels_per_block;
  return shared + ((task.group * cut_.grid.count() + box) * blocks() + block) * shared_floats();
}

DenseSource DenseSources::find(const Bindings& bindings, const DenseTask& task, int64_t first) const {
  const PassTensor& tensor = source_of(pass_);
  const auto& s = tensor.strides;
  const auto* base = static_cast<const float*>(bindings[tensor.operand]);
  const int64_t at = task.box.first[0] * s[0] + (task.group * source_channels(pass_) + first) * s[1] +
                     task.start[0] * s[2] + task.start[1] * s[3] + task.start[2] * s[4];
  return {base + at, s[0], s[1], {s[2], s[3], s[4]}};
}

DenseSource DenseSources::load(const Bindings& bindings, DenseTask& task, int64_t first,
                               int64_t channels) const {
  const PassTensor& tensor = source_of(pass_);
  const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
  StripShape shape{.channels = channels, .start = task.start, .extent = cut_.extent};
  for (size_t axis = 0; axis < 3; ++axis) shape.size[axis] = cut_.phases.front().axes[axis].source_size;
  const int64_t image = channels * cut_.plane(), images = task.box.size[0];
  if (const float* plain = whole_planes(bindings, task, first)) {
    kernels::cpu::transpose(plain, tensor.strides[0], task.turned, images, images, image);
    return turned(task.turned, images, channels);
  }
  for (int64_t n = 0; n < images; ++n) {
    const int64_t at = (task.box.first[0] + n) * tensor.strides[0] +
                       (task.group * source_channels(pass_) + first) * tensor.strides[1];
    const std::byte* from = static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes;
    if (tiles_) {
      task.sound &= load_cell_strip(tensor, partner_, from, shape, task.strip);
      kernels::cpu::transpose(task.strip, cut_.plane(), task.turned + n * cut_.plane() * pitch(channels),
                              pitch(channels), channels, cut_.plane());
    } else if (partner_ != 0)
      task.sound &= load_cell_strip(tensor, partner_, from, shape, task.strip + n * image);
    else
      load_strip(tensor, pass_.rounding, from, shape, task.strip + n * image);
  }
  if (!turns()) return in_strip(task.strip, channels);
  if (!tiles_) kernels::cpu::transpose(task.strip, image, task.turned, images, images, image);
  return turned(task.turned, images, channels);
}

DenseSource DenseSources::in_strip(const float* strip, int64_t channels) const {
  const int64_t h = cut_.extent[2], d = cut_.extent[1] * h;
  return {strip, channels * cut_.plane(), cut_.plane(), {d, h, 1}};
}

DenseSource DenseSources::turned(const float* strip, int64_t images, int64_t channels) const {
  if (tiles_) {
    const int64_t w = pitch(channels), h = cut_.extent[2] * w, d = cut_.extent[1] * h;
    return {strip, cut_.extent[0] * d, 1, {d, h, w}};
  }
  const int64_t h = cut_.extent[2] * images, d = cut_.extent[1] * h;
  return {strip, 1, cut_.extent[0] * d, {d, h, images}};
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
    if (task.start[axis] != 0 || cut_.extent[axis] != size || (size > 1 && s[axis + 2] != stride))
      return nullptr;
    stride *= size;
  }
  if (s[1] != stride) return nullptr;
  return static_cast<const float*>(bindings[tensor.operand]) + task.box.first[0] * s[0] +
         (task.group * source_channels(pass_) + first) * s[1];
}

}  // namespace retrograd::engines::cpu
