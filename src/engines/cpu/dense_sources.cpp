// SPDX-License-Identifier: Apache-2.0
// Strips: [image][channel][place], or [channel][place][image] where images are rows of tiles.
#include "engines/cpu/dense_sources.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/bf16_cells.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;

// Whether the channels of a plain tensor follow each other so closely that they may be read in turn where
// they are: not each in another page, and not all in the same lines of L1.
bool has_small_planes(const PassTensor& tensor) {
  constexpr int64_t kMostFloats = 1280, kUnluckyFloats = 256;
  return tensor.strides[1] > 0 && tensor.strides[1] <= kMostFloats && tensor.strides[1] % kUnluckyFloats != 0;
}

bool is_read_in_place(const ConvPass& pass, const DenseBlocking& cut) {
  const PassTensor& source = source_of(pass);
  // Places a multiple of 1 KiB apart share four sets of L1, which the rows of a tile then fight for: 1.9
  // times slower than a copy (256 channels last, 14 x 14).
  const bool aliased = source.strides[4] % 256 == 0 && source.strides[4] != 0;
  return is_plain(source, pass.rounding) && cut.skips_dead_taps[2] && !aliased &&
         (source.strides[1] == 1 || (!cut.images_inside && has_small_planes(source)));
}

}  // namespace

DenseSources::DenseSources(const ConvPass& pass, const DenseBlocking& cut, int64_t partner)
    : pass_(pass), cut_(cut), partner_(partner), in_place_(is_read_in_place(pass, cut)) {
  if (in_place_) return;
  const size_t strip = part_bytes<float>(cut_.grid.box[0] * cut_.channels_per_block * cut_.plane());
  if (!cut_.whole_images || cut_.images_inside) strip_bytes_ = strip;
  if (!cut_.whole_images && cut_.images_inside) turned_bytes_ = strip;
  if (cut_.whole_images)
    shared_bytes_ = part_bytes<float>(cut_.grid.boxes[0] * cut_.grid.box[0] * pass_.groups *
                                      source_channels(pass_) * cut_.plane());
}

DenseSource DenseSources::at(const Bindings& bindings, DenseTask& task, int64_t first, int64_t channels,
                             float* shared) const {
  if (in_place_) return find(bindings, task, first);
  if (!cut_.whole_images) return load(bindings, task, first, channels);
  const float* strip = shared_strip(task, first, shared);
  return cut_.images_inside ? turned(strip, task.box.size[0]) : in_strip(strip, channels);
}

int64_t DenseSources::blocks() const { return ceil_div(source_channels(pass_), cut_.channels_per_block); }
int64_t DenseSources::strips() const { return cut_.grid.count() * pass_.groups * blocks(); }
int64_t DenseSources::task_of(int64_t index) const { return index / blocks() * cut_.m_blocks; }

void DenseSources::share(const Bindings& bindings, DenseTask& task, int64_t index, float* shared) const {
  const int64_t first = index % blocks() * cut_.channels_per_block;
  (cut_.images_inside ? task.turned : task.strip) = shared_strip(task, first, shared);
  load(bindings, task, first, std::min(cut_.channels_per_block, source_channels(pass_) - first));
}

float* DenseSources::shared_strip(const DenseTask& task, int64_t first, float* shared) const {
  const int64_t floats = cut_.grid.box[0] * cut_.plane(), box = task.box.first[0] / cut_.grid.box[0];
  return shared + ((task.group * cut_.grid.count() + box) * source_channels(pass_) + first) * floats;
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
    return turned(task.turned, images);
  }
  for (int64_t n = 0; n < images; ++n) {
    const int64_t at = (task.box.first[0] + n) * tensor.strides[0] +
                       (task.group * source_channels(pass_) + first) * tensor.strides[1];
    const std::byte* from = static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes;
    if (partner_ != 0)
      task.sound &= load_cell_strip(tensor, partner_, from, shape, task.strip + n * image);
    else
      load_strip(tensor, pass_.rounding, from, shape, task.strip + n * image);
  }
  if (!cut_.images_inside) return in_strip(task.strip, channels);
  kernels::cpu::transpose(task.strip, image, task.turned, images, images, image);
  return turned(task.turned, images);
}

DenseSource DenseSources::in_strip(const float* strip, int64_t channels) const {
  const int64_t h = cut_.extent[2], d = cut_.extent[1] * h;
  return {strip, channels * cut_.plane(), cut_.plane(), {d, h, 1}};
}

DenseSource DenseSources::turned(const float* strip, int64_t images) const {
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
