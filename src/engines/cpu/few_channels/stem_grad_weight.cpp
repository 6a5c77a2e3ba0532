// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p x[i, p·stride + offset(t)] · y[o, p],   p over batch and space
//
// A task owns a block of y channels, a block of x channels and a split of the positions. For each box of
// positions it transposes y to panels [position][width], copies a zero-padded strip of x, and runs tiles of 6
// (i, t) rows × `width` channels, with the positions as the sum: taps, stride and dilation are offsets into
// the strip. Partial sums of the splits are added in order at the end.
//
// Zero padding multiplies y by 0 where the mathematics skips it, which differs only if y is not finite: y is
// looked at while it is packed, and such a pass is left to dense_grad_weight.cpp, which leaves out what is
// padded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/few_channels/stem_blocking.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kMostXChannels = 3;

class StemGradWeightStep final : public Step {
 public:
  StemGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        width_(widest_vectors_of(machine).tile_width()),
        cut_(plan_stem(pass, width_, vectors_of(machine).tile_width())),
        blocks_(pass.groups * cut_.y_blocks * cut_.x_blocks),
        rows_(cut_.x_block * cut_.taps) {
    for (const PhaseTap& d : cut_.axes[0].taps)
      for (const PhaseTap& h : cut_.axes[1].taps)
        for (const PhaseTap& w : cut_.axes[2].taps)
          tap_offsets_.push_back(((d.offset - cut_.axes[0].lowest_offset()) * cut_.extent[1] + h.offset -
                                  cut_.axes[1].lowest_offset()) *
                                     cut_.extent[2] +
                                 w.offset - cut_.axes[2].lowest_offset());
    for (const AxisPhase& axis : cut_.axes) leaves_source_ |= axis.leaves_source();
    const int64_t positions = count_of(cut_.grid.box);
    sum_floats_ = rows_ * cut_.y_block;
    if (leaves_source_) masking_ = dense_grad_weight().make_step(pass, machine);
    slots_.count = std::min<int64_t>(machine.cpu.threads, blocks_ * cut_.splits);
    // A task that has all of its sums stores them itself.
    sums_ = cut_.splits > 1 ? slots_.shared.add<float>(blocks_ * cut_.splits * sum_floats_)
                            : slots_.own.add<float>(sum_floats_);
    panels_ = slots_.own.add<float>(positions * cut_.y_block);
    strip_ = slots_.own.add<float>(cut_.grid.box[0] * cut_.x_block * plane());
    row_ = slots_.own.add<float>(cut_.grid.box[3] * width_);
  }

  std::string describe() const override {
    return fmt::format(
        "tiles of {} rows x {} y channels; {} tasks: {} splits of {}, blocks of {} x {} channels",
        kernels::cpu::kTileRows, width_, blocks_ * cut_.splits, cut_.splits, to_string(cut_.grid),
        cut_.y_block, cut_.x_block);
  }

  size_t workspace_bytes() const override {
    return std::max(slots_.bytes(), masking_ ? masking_->workspace_bytes() : 0);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const bool split = cut_.splits > 1;
    std::atomic<bool> finite{true};
    const auto sum = [&](int64_t task, int64_t slot) {
      if (!finite.load(std::memory_order_relaxed)) return;
      std::byte* const memory = slots_.at(workspace, slot);
      float* const sums = split ? sums_.in(workspace) + task * sum_floats_ : sums_.in(memory);
      if (!sum_split(bindings, task % blocks_, task / blocks_, sums, memory))
        finite.store(false, std::memory_order_relaxed);
      else if (!split)
        store_block(bindings, task, sums);
    };
    const auto finish = [&](int64_t block, int64_t) {
      if (!finite.load(std::memory_order_relaxed)) return;
      float* const sums = sums_.in(workspace);
      add_splits(sums, block);
      store_block(bindings, block, sums + block * sum_floats_);
    };
    run_stages(*context.pool, slots_.count, blocks_ * cut_.splits, sum, split ? blocks_ : 0, finish);
    if (!finite) masking_->run(bindings, workspace, context);
  }

 private:
  struct Place {
    int64_t group, y_first, y_count, x_first, x_count;  // channels within the group
  };
  Place place_of(int64_t block) const {
    const int64_t x_index = block % cut_.x_blocks, rest = block / cut_.x_blocks;
    const int64_t y_first = rest % cut_.y_blocks * cut_.y_block, x_first = x_index * cut_.x_block;
    return {rest / cut_.y_blocks, y_first, std::min(cut_.y_block, pass_.y_channels_per_group() - y_first),
            x_first, std::min(cut_.x_block, pass_.x_channels_per_group() - x_first)};
  }
  int64_t plane() const { return cut_.extent[0] * cut_.extent[1] * cut_.extent[2]; }
  // Of a box.
  struct Operands {
    const float *strip, *panels;
    const int64_t* bases;  // of the positions in the strip
    int64_t positions;
  };
  struct TapRange {
    int64_t first, last;
  };

  // sums[(x channel, tap)][y_block]; false where y is not finite and meets zeros.
  bool sum_split(const Bindings& bindings, int64_t block, int64_t split, float* sums,
                 std::byte* memory) const {
    const Place place = place_of(block);
    float *const panels = panels_.in(memory), *const strip = strip_.in(memory);
    int64_t bases[kStemPositionsPerBox];  // not in the workspace, which a caller may share by mistake
    const int64_t first = split * cut_.boxes_per_split;
    const int64_t last = std::min(first + cut_.boxes_per_split, cut_.grid.count());
    if (first >= last) std::fill_n(sums, sum_floats_, 0.0F);
    for (int64_t index = first; index < last; ++index) {
      const BoxGrid::Box box = cut_.grid.at(index);
      const int64_t positions = count_of(box.size);
      load_panels(bindings, place, box, row_.in(memory), panels);
      if (leaves_source_ && !all_finite(panels, positions * cut_.y_block)) return false;
      load_source(bindings, place, box, strip);
      list_positions(box, bases);
      multiply(place, box, {strip, panels, bases, positions}, index > first, sums);
    }
    return true;
  }

  // panels[y block of width][position][width]
  void load_panels(const Bindings& bindings, const Place& place, const BoxGrid::Box& box, float* row,
                   float* panels) const {
    const auto& s = pass_.y.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[pass_.y.operand]);
    const int64_t positions = count_of(box.size);
    for (int64_t c = 0; c < cut_.y_block; c += width_) {
      float* out = panels + c * positions;
      const int64_t count = std::clamp<int64_t>(place.y_count - c, 0, width_);
      if (count < width_) std::fill_n(out, positions * width_, 0.0F);
      const int64_t channel = place.group * pass_.y_channels_per_group() + place.y_first + c;
      for (int64_t n = 0; n < box.size[0]; ++n)
        for (int64_t z = 0; z < box.size[1]; ++z)
          for (int64_t y = 0; y < box.size[2]; ++y, out += box.size[3] * width_) {
            const int64_t at = (box.first[0] + n) * s[0] + channel * s[1] + (box.first[1] + z) * s[2] +
                               (box.first[2] + y) * s[3] + box.first[3] * s[4];
            load_panel_row(base + at * bytes, box.size[3], count, row, out);
          }
    }
  }

  // out[x][width] of `count` channels.
  void load_panel_row(const std::byte* source, int64_t length, int64_t count, float* row, float* out) const {
    const auto& s = pass_.y.strides;
    if (is_plain(pass_.y, pass_.rounding) && s[4] == 1)
      return kernels::cpu::transpose(reinterpret_cast<const float*>(source), s[1], out, width_, count,
                                     length);
    const auto bytes = static_cast<int64_t>(size_of(pass_.y.dtype));
    for (int64_t c = 0; c < count; ++c)
      load_row(pass_.y.dtype, pass_.rounding, source + c * s[1] * bytes, s[4], length, row + c * length);
    kernels::cpu::transpose(row, length, out, width_, count, length);
  }

  void load_source(const Bindings& bindings, const Place& place, const BoxGrid::Box& box,
                   float* strip) const {
    const auto& s = pass_.x.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.x.dtype));
    StripShape shape{.channels = place.x_count, .extent = cut_.extent};
    for (size_t axis = 0; axis < 3; ++axis) {
      shape.start[axis] = box.first[axis + 1] * cut_.axes[axis].source_step + cut_.axes[axis].lowest_offset();
      shape.size[axis] = cut_.axes[axis].source_size;
    }
    for (int64_t n = 0; n < box.size[0]; ++n) {
      const int64_t at =
          (box.first[0] + n) * s[0] + (place.group * pass_.x_channels_per_group() + place.x_first) * s[1];
      load_strip(pass_.x, pass_.rounding,
                 static_cast<const std::byte*>(bindings[pass_.x.operand]) + at * bytes, shape,
                 strip + n * cut_.x_block * plane());
    }
  }

  void list_positions(const BoxGrid::Box& box, int64_t* bases) const {
    const auto& [d, h, w] = cut_.axes;
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t z = 0; z < box.size[1]; ++z)
        for (int64_t y = 0; y < box.size[2]; ++y)
          for (int64_t x = 0; x < box.size[3]; ++x)
            *bases++ = n * cut_.x_block * plane() +
                       (z * d.source_step * cut_.extent[1] + y * h.source_step) * cut_.extent[2] +
                       x * w.source_step;
  }

  // Taps of D through which some position of the box reads inside x: beside a border a third of them may not.
  TapRange live_depths(const BoxGrid::Box& box) const {
    const AxisPhase& d = cut_.axes[0];
    const int64_t first = box.first[1] * d.source_step, last = first + (box.size[1] - 1) * d.source_step;
    TapRange live{0, static_cast<int64_t>(d.taps.size())};
    const auto offset = [&](int64_t tap) { return d.taps[static_cast<size_t>(tap)].offset; };
    while (live.first < live.last && last + offset(live.first) < 0) ++live.first;
    while (live.first < live.last && first + offset(live.last - 1) >= d.source_size) --live.last;
    return live;
  }

  void multiply(const Place& place, const BoxGrid::Box& box, const Operands& operands, bool accumulate,
                float* sums) const {
    if (cut_.taps == 0) return;
    const TapRange live = live_depths(box);
    const int64_t area = cut_.taps / static_cast<int64_t>(cut_.axes[0].taps.size());
    const int64_t first = live.first * area, last = live.last * area;
    if (last - first == cut_.taps)
      return multiply_rows(place, operands, 0, place.x_count * cut_.taps, accumulate, sums);
    for (int64_t i = 0; i < place.x_count; ++i) {
      const int64_t row = i * cut_.taps;
      if (!accumulate) std::fill_n(sums + row * cut_.y_block, cut_.taps * cut_.y_block, 0.0F);
      multiply_rows(place, operands, row + first, row + last, accumulate, sums);
    }
  }

  // Rows (x channel, tap) from `first` to `last`.
  void multiply_rows(const Place& place, const Operands& operands, int64_t first, int64_t last,
                     bool accumulate, float* sums) const {
    kernels::cpu::TileProduct tile;
    tile.offsets = operands.bases;
    tile.inner = operands.positions;
    tile.outer = 1;
    tile.c_stride = cut_.y_block;
    tile.accumulate = accumulate;
    for (int64_t c = 0; c < place.y_count; c += width_) {
      tile.b = operands.panels + c * operands.positions;
      for (int64_t r = first; r < last; r += kernels::cpu::kTileRows) {
        tile.rows = static_cast<int>(std::min<int64_t>(kernels::cpu::kTileRows, last - r));
        for (int i = 0; i < tile.rows; ++i)
          tile.a[i] = operands.strip + (r + i) / cut_.taps * plane() +
                      tap_offsets_[static_cast<size_t>((r + i) % cut_.taps)];
        tile.c = sums + r * cut_.y_block + c;
        kernels::cpu::tile_product(tile);
      }
    }
  }

  void add_splits(float* sums, int64_t block) const {
    float* total = sums + block * sum_floats_;
    const Place place = place_of(block);
    const int64_t used = place.x_count * cut_.taps * cut_.y_block;
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const float* part = sums + (split * blocks_ + block) * sum_floats_;
      for (int64_t i = 0; i < used; ++i) total[i] += part[i];
    }
  }

  void store_block(const Bindings& bindings, int64_t block, const float* sums) const {
    const Place place = place_of(block);
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    auto* base = static_cast<std::byte*>(bindings[pass_.w.operand]);
    base +=
        ((place.group * pass_.y_channels_per_group() + place.y_first) * s[0] + place.x_first * s[1]) * bytes;
    for (int64_t i = 0; i < place.x_count; ++i) {
      const float* row = sums + i * cut_.taps * cut_.y_block;
      for (const PhaseTap& d : cut_.axes[0].taps)
        for (const PhaseTap& h : cut_.axes[1].taps)
          for (const PhaseTap& w : cut_.axes[2].taps) {
            const int64_t at = i * s[1] + d.tap * s[2] + h.tap * s[3] + w.tap * s[4];
            store_row(pass_.w.dtype, base + at * bytes, s[0], row, 1, place.y_count);
            row += cut_.y_block;
          }
    }
  }

  ConvPass pass_;
  int64_t width_;
  StemBlocking cut_;
  int64_t blocks_;  // tasks of one split
  int64_t rows_;    // of a full block
  std::vector<int64_t> tap_offsets_;
  bool leaves_source_ = false;
  int64_t sum_floats_ = 0;
  std::unique_ptr<const Step> masking_;  // for what is not finite, where the taps leave x
  Slots slots_;
  Part<float> sums_, panels_, strip_, row_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& /*machine*/) {
  if (conv.x_channels_per_group() > kMostXChannels)
    return "a group has x channels enough to fill a tile's rows with them";
  if (has_dead_taps(conv)) return "there are taps that read padding alone";
  return std::nullopt;
}

}  // namespace

const Candidate& stem_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.stem_grad_weight", kGradWeights, unfit, stem_grad_weight_effort, make<StemGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
