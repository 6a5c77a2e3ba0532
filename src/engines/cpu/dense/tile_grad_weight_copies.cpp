// SPDX-License-Identifier: Apache-2.0
// Both layouts come out of both orders of the operands: channels whose pixels lie side by side are copied
// and, as pairs, turned over to panels; pixels whose channels do are paired and, as pairs, turned over to
// channels.
#include "engines/cpu/dense/tile_grad_weight_copies.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_layout.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {

using problem::PassTensor;
using problem::Window;

namespace {

constexpr int64_t kBytes = 2;
constexpr int64_t kTurnedChannels = TileGradWeightCut::kLanes;

// `width`: places of a row, of which one has no neighbour.
bool channels_together(const PassTensor& t, int64_t width) {
  return t.strides[1] == 1 && (t.strides[4] != 1 || width == 1);
}

}  // namespace

TileGradWeightCopies::TileGradWeightCopies(const TileGradWeightCut& cut) : cut_(cut) {
  x_bytes_ = part_bytes<uint16_t>(cut.phases * cut.row_block * cut.pitch);
  folded_bytes_ = cut.folded_taps > 1 ? part_bytes<uint16_t>(cut.outer_phases * cut.rows() * cut.pitch) : 0;
  y_bytes_ = part_bytes<uint16_t>(cut.lane_block * cut.numbers);
  turned_bytes_ = part_bytes<uint16_t>(kTurnedChannels * cut.pitch);
}

void TileGradWeightCopies::set_scratch(std::byte* scratch, TileGradWeightTask& task) const {
  task.x = reinterpret_cast<uint16_t*>(scratch);
  task.folded = reinterpret_cast<uint16_t*>(scratch += x_bytes_);
  task.y = reinterpret_cast<float*>(scratch += folded_bytes_);
  task.turned = reinterpret_cast<float*>(scratch + y_bytes_);
}

// row(number of its first place in the copy of a channel, where its first place that is there lies), null
// where it has none.
template <class Row>
void TileGradWeightCopies::for_each_row(const Part& part, const TileSpace& space, const Row& row) {
  const auto& s = part.tensor.strides;
  for (int64_t n = 0; n < part.images; ++n)
    for (int64_t d = 0; d < space.extent[0]; ++d)
      for (int64_t h = 0; h < space.extent[1]; ++h) {
        const bool live = d >= part.live[0].begin && d < part.live[0].end && h >= part.live[1].begin &&
                          h < part.live[1].end && part.live[2].size() > 0;
        const int64_t at = n * s[0] + (part.first[0] + (d - part.live[0].begin) * part.step[0]) * s[2] +
                           (part.first[1] + (h - part.live[1].begin) * part.step[1]) * s[3] +
                           part.first[2] * s[4];
        row(n * space.step[0] + d * space.step[1] + h * space.step[2],
            live ? part.base + at * kBytes : nullptr);
      }
}

// out[channel·pitch + number]
bool TileGradWeightCopies::copy_channels(const Part& part, int64_t channels, const TileSpace& space,
                                         int64_t pitch, uint16_t* out) {
  const auto& s = part.tensor.strides;
  const int64_t begin = part.live[2].begin, end = part.live[2].end;
  const int64_t width = space.step[2], step = s[4] * part.step[2];
  const kernels::cpu::CellType type = cell_type(part.tensor.dtype);
  bool sound = true;
  for (int64_t c = 0; c < channels; ++c, out += pitch) {
    for_each_row(part, space, [&](int64_t number, const std::byte* from) {
      uint16_t* row = out + number;
      if (from == nullptr) return void(std::fill_n(row, width, uint16_t{0}));
      std::fill(row, row + begin, uint16_t{0});
      std::fill(row + end, row + width, uint16_t{0});
      sound &= kernels::cpu::copy_places(from + c * s[1] * kBytes, step, end - begin, row + begin, type);
    });
    std::fill(out + part.images * space.step[0], out + pitch, uint16_t{0});
  }
  return sound;
}

// out[(number / 2)·pitch + channel], up to number `numbers`.
bool TileGradWeightCopies::pair_channels(const Part& part, int64_t channels, const TileSpace& space,
                                         int64_t numbers, int64_t pitch, float* out) {
  const int64_t begin = part.live[2].begin / 2, end = ceil_div(part.live[2].end, 2);
  kernels::cpu::PairedPlaces places;
  places.step = part.tensor.strides[4] * part.step[2];
  places.begin = part.live[2].begin;
  places.end = part.live[2].end;
  places.channels = channels;
  places.pitch = pitch;
  places.type = cell_type(part.tensor.dtype);
  bool sound = true;
  for_each_row(part, space, [&](int64_t number, const std::byte* from) {
    float *row = out + number / 2 * pitch, *next = row + space.step[2] / 2 * pitch;
    if (from == nullptr) return void(std::fill(row, next, 0.0F));
    std::fill(row, row + begin * pitch, 0.0F);
    std::fill(row + end * pitch, next, 0.0F);
    places.source = from;
    places.out = row;
    sound &= kernels::cpu::pair_places(places);
  });
  std::fill(out + part.images * space.step[0] / 2 * pitch, out + numbers / 2 * pitch, 0.0F);
  return sound;
}

void TileGradWeightCopies::copy_x(const Bindings& bindings, TileGradWeightTask& task, const BoxGrid::Box& box,
                                  const TileSpace& space) const {
  const problem::ConvPass& pass = cut_.pass;
  const auto& s = pass.x.strides;
  const int64_t channel = task.group * pass.x_channels_per_group() + task.row_first;
  Part part{.tensor = pass.x,
            .base = static_cast<const std::byte*>(bindings[pass.x.operand]) +
                    (box.first[0] * s[0] + channel * s[1]) * kBytes,
            .images = box.size[0],
            .live = {},
            .first = {},
            .step = {}};
  uint16_t* out = task.x;
  for (int64_t phase = 0; phase < cut_.phases; ++phase, out += task.row_count * space.pitch) {
    int64_t rest = phase;
    for (size_t i = 3; i-- > 0;) {
      const TileAxis& axis = cut_.axes[i];
      const Window& w = pass.axes[i];
      const auto residues = static_cast<int64_t>(axis.residues.size());
      // Place `number` of the copy is that many strides behind this one.
      const int64_t origin =
          box.first[i + 1] * w.stride - w.pad_lo + axis.residues[static_cast<size_t>(rest % residues)];
      rest /= residues;
      const int64_t begin =
          std::clamp<int64_t>(ceil_div(std::max<int64_t>(-origin, 0), w.stride), 0, space.extent[i]);
      const int64_t end =
          std::clamp<int64_t>(ceil_div(std::max<int64_t>(w.x - origin, 0), w.stride), begin, space.extent[i]);
      part.live[i] = {begin, end};
      part.first[i] = origin + begin * w.stride;
      part.step[i] = w.stride;
    }
    if (channels_together(pass.x, pass.axes[2].x))
      turn_channels(part, task, space, out);
    else
      task.sound &= copy_channels(part, task.row_count, space, space.pitch, out);
  }
  if (cut_.folded_taps > 1) fold(task, space);
}

// Pairs of some channels at a time, which stay in L1 until they are turned over.
void TileGradWeightCopies::turn_channels(Part part, TileGradWeightTask& task, const TileSpace& space,
                                         uint16_t* out) {
  const int64_t cells = space.pitch / 2;
  for (int64_t c = 0; c < task.row_count; c += kTurnedChannels) {
    const int64_t count = std::min(kTurnedChannels, task.row_count - c);
    task.sound &= pair_channels(part, count, space, space.pitch, count, task.turned);
    kernels::cpu::transpose(task.turned, count, reinterpret_cast<float*>(out + c * space.pitch), cells, cells,
                            count);
    part.base += kTurnedChannels * part.tensor.strides[1] * kBytes;
  }
}

// The channels of every folded tap as rows of their own, where those of others are at the same number.
void TileGradWeightCopies::fold(const TileGradWeightTask& task, const TileSpace& space) const {
  const int64_t channels = task.row_count * space.pitch;
  for (int64_t tap = 0; tap < cut_.folded_taps; ++tap) {
    int64_t rest = tap, phase = 0, shift = 0, phases = 1;
    for (size_t i = 3; i-- > cut_.folded_from;) {
      const TileAxis& axis = cut_.axes[i];
      const auto t = static_cast<size_t>(rest % cut_.pass.axes[i].kernel);
      rest /= cut_.pass.axes[i].kernel;
      phase += axis.phase_of[t] * phases;
      phases *= static_cast<int64_t>(axis.residues.size());
      shift += axis.steps_of[t] * space.step[i + 1];
    }
    for (int64_t outer = 0; outer < cut_.outer_phases; ++outer)
      for (int64_t c = 0; c < task.row_count; ++c) {
        const uint16_t* from = task.x + (outer * phases + phase) * channels + c * space.pitch;
        uint16_t* to = task.folded + ((outer * cut_.folded_taps + tap) * task.row_count + c) * space.pitch;
        kernels::cpu::copy_places(reinterpret_cast<const std::byte*>(from + shift), 1, space.pitch - shift,
                                  to, cell_type(cut_.pass.x.dtype));
        std::fill_n(to + space.pitch - shift, shift, uint16_t{0});
      }
  }
}

void TileGradWeightCopies::copy_y(const Bindings& bindings, TileGradWeightTask& task, const BoxGrid::Box& box,
                                  const TileSpace& space) const {
  const problem::ConvPass& pass = cut_.pass;
  const auto& s = pass.y.strides;
  Part part{.tensor = pass.y,
            .base = nullptr,
            .images = box.size[0],
            .live = {},
            .first = {box.first[1], box.first[2], box.first[3]},
            .step = {1, 1, 1}};
  for (size_t i = 0; i < 3; ++i) part.live[i] = {0, box.size[i + 1]};
  const int64_t cells = space.numbers / 2;
  float* out = task.y;
  for (int64_t lane = 0; lane < task.lane_count;) {
    const int64_t width = task.width_at(lane), count = std::min(width, task.lane_count - lane);
    const int64_t channel = task.group * pass.y_channels_per_group() + task.lane_first + lane;
    part.base = static_cast<const std::byte*>(bindings[pass.y.operand]) +
                (box.first[0] * s[0] + channel * s[1]) * kBytes;
    if (channels_together(pass.y, pass.axes[2].y)) {
      if (count < width) std::fill_n(out, cells * width, 0.0F);
      task.sound &= pair_channels(part, count, space, space.numbers, width, out);
    } else {
      auto* rows = reinterpret_cast<uint16_t*>(task.turned);
      std::fill_n(rows + count * space.numbers, (width - count) * space.numbers, uint16_t{0});
      task.sound &= copy_channels(part, count, space, space.numbers, rows);
      kernels::cpu::transpose(task.turned, cells, out, width, width, cells);
    }
    out += cells * width;
    lane += width;
  }
}

}  // namespace retrograd::engines::cpu
