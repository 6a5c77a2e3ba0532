// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p x[i, p·stride + offset(t)] · y[o, p],   p over batch and space
//
// One operand's channels are lanes: a task packs `width` of them to panels [place][width]. The other's are
// rows: scalars, read in place where they are plain FP32. For each tap, a list of the positions that read
// inside x says where both lie; tiles of rows × `width` add up over the list. Nothing is padded, so nothing
// is multiplied that the mathematics does not multiply. Partial sums of the splits are added in order at the
// end.
#include "engines/cpu/dense_grad_weight.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/bf16_cells.h"
#include "engines/cpu/grad_weight_blocking.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "engines/cpu/weight_panels.h"
#include "kernels/cpu/bf16_pairs.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

// Places of an operand that a box reads.
struct Part {
  int64_t first_image = 0, images = 0;
  std::array<int64_t, 3> start{}, size{};
  int64_t plane() const { return size[0] * size[1] * size[2]; }
};

class DenseGradWeightStep final : public Step {
 public:
  // With a fallback for numbers that are too small for their cells, where the pass is over cells.
  DenseGradWeightStep(const CellPass& cells, std::unique_ptr<const Step> fallback)
      : pass_(without_idle_places(cells.pass)),
        x_partner_(cells.x),
        y_partner_(cells.y),
        fallback_(std::move(fallback)),
        cut_(plan_grad_weight(pass_)),
        slots_(runtime::ThreadPool::instance().threads()),
        taps_(pass_.axes[0].kernel * pass_.axes[1].kernel * pass_.axes[2].kernel),
        copies_rows_(!is_plain(rows(), pass_.rounding)) {
    const int64_t positions = count_of(cut_.grid.box);
    const int64_t x_places = cut_.grid.box[0] * cut_.extent[0] * cut_.extent[1] * cut_.extent[2];
    const int64_t lane_places = cut_.lanes_are_x ? x_places : positions;
    const int64_t row_places = cut_.lanes_are_x ? positions : x_places;
    sum_floats_ = taps_ * cut_.row_block * cut_.width;
    sum_bytes_ = part_bytes<float>(tasks() * sum_floats_);
    panel_bytes_ = part_bytes<float>(lane_places * cut_.width);
    raw_bytes_ = part_bytes<float>(lane_places / cut_.grid.box[0] * cut_.width);
    row_bytes_ = copies_rows_ ? part_bytes<float>(row_places * cut_.row_block) : 0;
    list_bytes_ = part_bytes<int64_t>(positions);
    slot_bytes_ = panel_bytes_ + raw_bytes_ + row_bytes_ + 2 * list_bytes_;
  }

  size_t workspace_bytes() const override {
    return std::max(sum_bytes_ + static_cast<size_t>(std::min(slots_, tasks())) * slot_bytes_,
                    fallback_ ? fallback_->workspace_bytes() : 0);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* sums = reinterpret_cast<float*>(workspace);
    std::atomic<bool> sound{true};
    run_tasks(*context.pool, tasks(), slots_, [&](int64_t index, int64_t slot) {
      std::byte* scratch = workspace + sum_bytes_ + static_cast<size_t>(slot) * slot_bytes_;
      Task task = make_task(index % blocks(), scratch);
      sum_split(bindings, task, index / blocks(), sums + index * sum_floats_);
      if (!task.sound) sound.store(false, std::memory_order_relaxed);
    });
    if (!sound) return fallback_->run(bindings, workspace, context);
    run_tasks(*context.pool, blocks(), slots_, [&](int64_t block, int64_t) {
      add_splits(sums, block);
      store_block(bindings, make_task(block, nullptr), sums + block * sum_floats_);
    });
  }

 private:
  const PassTensor& lanes() const { return cut_.lanes_are_x ? pass_.x : pass_.y; }
  const PassTensor& rows() const { return cut_.lanes_are_x ? pass_.y : pass_.x; }
  int64_t channels(bool of_x) const {
    return of_x ? pass_.x_channels_per_group() : pass_.y_channels_per_group();
  }
  int64_t blocks() const { return cut_.blocks(pass_.groups); }
  int64_t tasks() const { return blocks() * cut_.splits; }

  // A block of the result, and scratch to compute it with.
  struct Task {
    int64_t group, lane_first, lane_count, row_first, row_count;  // channels within the group
    float *panel, *raw, *copy;
    int64_t *a_offsets, *b_offsets;
    bool sound = true;  // no number was too small for its cell
  };
  // Where an operand's values lie: floats from one image, channel and place to the next.
  struct Layout {
    const float* first;
    int64_t image, channel;
    std::array<int64_t, 3> axis;
    std::array<int64_t, 3> start;  // place of `first`
  };

  Task make_task(int64_t block, std::byte* scratch) const {
    Task task{};
    task.row_first = block % cut_.row_blocks * cut_.row_block;
    task.row_count = std::min(cut_.row_block, channels(!cut_.lanes_are_x) - task.row_first);
    block /= cut_.row_blocks;
    task.lane_first = block % cut_.lane_blocks * cut_.width;
    task.lane_count = std::min(cut_.width, channels(cut_.lanes_are_x) - task.lane_first);
    task.group = block / cut_.lane_blocks;
    if (scratch == nullptr) return task;
    task.panel = reinterpret_cast<float*>(scratch);
    task.raw = reinterpret_cast<float*>(scratch += panel_bytes_);
    task.copy = reinterpret_cast<float*>(scratch += raw_bytes_);
    task.a_offsets = reinterpret_cast<int64_t*>(scratch += row_bytes_);
    task.b_offsets = reinterpret_cast<int64_t*>(scratch + list_bytes_);
    return task;
  }

  Part part_of(bool of_x, const BoxGrid::Box& box) const {
    Part part{.first_image = box.first[0], .images = box.size[0]};
    for (size_t axis = 0; axis < 3; ++axis) {
      const problem::Window& w = pass_.axes[axis];
      const int64_t first = box.first[axis + 1], size = box.size[axis + 1];
      const int64_t begin = first * w.stride - w.pad_lo;
      const int64_t end = (first + size - 1) * w.stride - w.pad_lo + (w.kernel - 1) * w.dilation + 1;
      part.start[axis] = of_x ? std::clamp<int64_t>(begin, 0, w.x) : first;
      part.size[axis] = of_x ? std::clamp<int64_t>(end, part.start[axis], w.x) - part.start[axis] : size;
    }
    return part;
  }

  // sums[tap][row][width]
  void sum_split(const Bindings& bindings, Task& task, int64_t split, float* sums) const {
    const int64_t first = split * cut_.boxes_per_split;
    const int64_t last = std::min(first + cut_.boxes_per_split, cut_.grid.count());
    for (int64_t index = first; index < last; ++index) {
      const BoxGrid::Box box = cut_.grid.at(index);
      const Layout panel = pack_lanes(bindings, task, part_of(cut_.lanes_are_x, box));
      const Layout scalars = find_rows(bindings, task, part_of(!cut_.lanes_are_x, box));
      float* out = sums;
      for (int64_t d = 0; d < pass_.axes[0].kernel; ++d)
        for (int64_t h = 0; h < pass_.axes[1].kernel; ++h)
          for (int64_t w = 0; w < pass_.axes[2].kernel; ++w, out += cut_.row_block * cut_.width) {
            const int64_t count = list_positions(task, box, {d, h, w}, scalars, panel);
            multiply(task, scalars, panel, count, index > first, out);
          }
    }
  }

  // Panels [image][place][width].
  Layout pack_lanes(const Bindings& bindings, Task& task, const Part& part) const {
    const PassTensor& t = lanes();
    const auto& s = t.strides;
    const auto bytes = static_cast<int64_t>(size_of(t.dtype));
    const int64_t channel = task.group * channels(cut_.lanes_are_x) + task.lane_first;
    const auto* base = static_cast<const std::byte*>(bindings[t.operand]) + channel * s[1] * bytes;
    if (task.lane_count < cut_.width) std::fill_n(task.panel, part.images * part.plane() * cut_.width, 0.0F);
    float* out = task.panel;
    for (int64_t n = 0; n < part.images; ++n, out += part.plane() * cut_.width)
      task.sound &=
          pack_image(t, base + (part.first_image + n) * s[0] * bytes, part, task.lane_count, task.raw, out);
    const int64_t h = part.size[2] * cut_.width;
    return {task.panel, part.plane() * cut_.width, 1, {part.size[1] * h, h, cut_.width}, part.start};
  }

  bool pack_image(const PassTensor& t, const std::byte* source, const Part& part, int64_t count, float* raw,
                  float* out) const {
    const auto& s = t.strides;
    const auto& [depth, height, length] = part.size;
    if (!is_plain(t, pass_.rounding) && side_by_side(t, part))
      return load_places(t, source, part, count, cut_.width, out);
    if (!is_plain(t, pass_.rounding) || (s[1] != 1 && s[4] != 1)) {
      const StripShape shape{.channels = count,
                             .start = part.start,
                             .extent = part.size,
                             .size = {INT64_MAX, INT64_MAX, INT64_MAX}};
      const bool sound = load(t, source, shape, raw);
      kernels::cpu::transpose(raw, part.plane(), out, cut_.width, count, part.plane());
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
          for (int64_t x = 0; x < length; ++x) std::copy_n(row + x * s[4], count, out + x * cut_.width);
        else
          kernels::cpu::transpose(row, s[1], out, cut_.width, count, run);
        out += run * cut_.width;
      }
    return true;
  }

  // A strip of numbers, or of cells; false where a cell cannot hold its numbers.
  bool load(const PassTensor& t, const std::byte* source, const StripShape& shape, float* out) const {
    const int64_t partner = &t == &pass_.x ? x_partner_ : y_partner_;
    if (partner != 0) return load_cell_strip(t, partner, source, shape, out);
    load_strip(t, pass_.rounding, source, shape, out);
    return true;
  }

  // Channels of a place that lie together, and places that do not: nothing needs turning over.
  static bool side_by_side(const PassTensor& t, const Part& part) {
    return t.strides[1] == 1 && (t.strides[4] != 1 || part.plane() == 1);
  }
  // out[place][pitch] of `count` such channels, numbers or cells.
  bool load_places(const PassTensor& t, const std::byte* source, const Part& part, int64_t count,
                   int64_t pitch, float* out) const {
    const auto& s = t.strides;
    const auto bytes = static_cast<int64_t>(size_of(t.dtype));
    const int64_t partner = &t == &pass_.x ? x_partner_ : y_partner_;
    bool sound = true;
    for (int64_t d = 0; d < part.size[0]; ++d)
      for (int64_t h = 0; h < part.size[1]; ++h)
        for (int64_t w = 0; w < part.size[2]; ++w, out += pitch) {
          const std::byte* from =
              source +
              ((part.start[0] + d) * s[2] + (part.start[1] + h) * s[3] + (part.start[2] + w) * s[4]) * bytes;
          if (partner != 0)
            sound &= load_cells(from, partner, 1, count, out);
          else
            load_row(t.dtype, pass_.rounding, from, 1, count, out);
        }
    return sound;
  }

  Layout find_rows(const Bindings& bindings, Task& task, const Part& part) const {
    const PassTensor& t = rows();
    const auto& s = t.strides;
    const auto bytes = static_cast<int64_t>(size_of(t.dtype));
    const int64_t channel = task.group * channels(!cut_.lanes_are_x) + task.row_first;
    const auto* base = static_cast<const std::byte*>(bindings[t.operand]) +
                       (part.first_image * s[0] + channel * s[1]) * bytes;
    if (!copies_rows_) return {reinterpret_cast<const float*>(base), s[0], s[1], {s[2], s[3], s[4]}, {}};
    const StripShape shape{.channels = task.row_count,
                           .start = part.start,
                           .extent = part.size,
                           .size = {INT64_MAX, INT64_MAX, INT64_MAX}};
    const int64_t image = task.row_count * part.plane();
    if (side_by_side(t, part)) {
      const int64_t pitch = task.row_count, row = part.size[2] * pitch;
      for (int64_t n = 0; n < part.images; ++n)
        task.sound &= load_places(t, base + n * s[0] * bytes, part, pitch, pitch, task.copy + n * image);
      return {task.copy, image, 1, {part.size[1] * row, row, pitch}, part.start};
    }
    for (int64_t n = 0; n < part.images; ++n)
      task.sound &= load(t, base + n * s[0] * bytes, shape, task.copy + n * image);
    return {task.copy, image, part.plane(), {part.size[1] * part.size[2], part.size[2], 1}, part.start};
  }

  // Where both operands lie at the positions of the box that read inside x through this tap.
  int64_t list_positions(const Task& task, const BoxGrid::Box& box, const std::array<int64_t, 3>& tap,
                         const Layout& scalars, const Layout& panel) const {
    const Layout& x = cut_.lanes_are_x ? panel : scalars;
    const Layout& y = cut_.lanes_are_x ? scalars : panel;
    std::array<int64_t, 3> begin, end, x_first, x_step;
    for (size_t axis = 0; axis < 3; ++axis) {
      const problem::Window& w = pass_.axes[axis];
      const auto live = live_outputs(w, tap[axis]);
      const int64_t first = box.first[axis + 1];
      begin[axis] = std::max(live.begin, first);
      end[axis] = std::min(live.end, first + box.size[axis + 1]);
      x_first[axis] = (tap[axis] * w.dilation - w.pad_lo - x.start[axis]) * x.axis[axis];
      x_step[axis] = w.stride * x.axis[axis];
    }
    int64_t* x_out = cut_.lanes_are_x ? task.b_offsets : task.a_offsets;
    int64_t* y_out = cut_.lanes_are_x ? task.a_offsets : task.b_offsets;
    int64_t count = 0;
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t d = begin[0]; d < end[0]; ++d)
        for (int64_t h = begin[1]; h < end[1]; ++h) {
          const int64_t x_at =
              n * x.image + x_first[0] + d * x_step[0] + x_first[1] + h * x_step[1] + x_first[2];
          const int64_t y_at = n * y.image + (d - y.start[0]) * y.axis[0] + (h - y.start[1]) * y.axis[1] -
                               y.start[2] * y.axis[2];
          for (int64_t w = begin[2]; w < end[2]; ++w, ++count) {
            x_out[count] = x_at + w * x_step[2];
            y_out[count] = y_at + w * y.axis[2];
          }
        }
    return count;
  }

  void multiply(const Task& task, const Layout& scalars, const Layout& panel, int64_t count, bool accumulate,
                float* out) const {
    if (count == 0) {
      if (!accumulate) std::fill_n(out, cut_.row_block * cut_.width, 0.0F);
      return;
    }
    kernels::cpu::TileProduct tile;
    tile.width = cut_.width;
    tile.offsets = task.a_offsets;
    tile.b_offsets = task.b_offsets;
    tile.inner = count;
    tile.b = panel.first;
    tile.c_stride = cut_.width;
    tile.accumulate = accumulate;
    int64_t tiles = ceil_div(task.row_count, kernels::cpu::tile_rows(cut_.width, scalars.channel));
    for (int64_t row = 0; row < task.row_count; row += tile.rows, --tiles) {
      tile.set_rows(scalars.first + row * scalars.channel, scalars.channel,
                    ceil_div(task.row_count - row, tiles));
      tile.c = out + row * cut_.width;
      if (fallback_)
        kernels::cpu::bf16_tile_product(tile);
      else
        kernels::cpu::tile_product(tile);
    }
  }

  void add_splits(float* sums, int64_t block) const {
    float* total = sums + block * sum_floats_;
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const float* part = sums + (split * blocks() + block) * sum_floats_;
      for (int64_t i = 0; i < sum_floats_; ++i) total[i] += part[i];
    }
  }

  void store_block(const Bindings& bindings, const Task& task, const float* sums) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const int64_t lane_stride = cut_.lanes_are_x ? s[1] : s[0], row_stride = cut_.lanes_are_x ? s[0] : s[1];
    const int64_t h = pass_.axes[1].kernel, w = pass_.axes[2].kernel;
    const bool taps_touch = taps_ > 1 && taps_follow_each_other(pass_);
    std::byte* base = static_cast<std::byte*>(bindings[pass_.w.operand]) +
                      (task.group * pass_.y_channels_per_group() * s[0] + task.lane_first * lane_stride +
                       task.row_first * row_stride) *
                          bytes;
    const int64_t tap_floats = cut_.row_block * cut_.width;
    if (taps_ == 1 && row_stride == 1)
      return store_turned(pass_.w.dtype, base, lane_stride, sums, cut_.width, task.row_count,
                          task.lane_count);
    for (int64_t row = 0; row < task.row_count; ++row) {
      std::byte* out = base + row * row_stride * bytes;
      const float* from = sums + row * cut_.width;
      if (taps_touch && lane_stride != 1) {
        store_turned(pass_.w.dtype, out, lane_stride, from, tap_floats, taps_, task.lane_count);
        continue;
      }
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int64_t at = tap / (h * w) * s[2] + tap / w % h * s[3] + tap % w * s[4];
        store_row(pass_.w.dtype, out + at * bytes, lane_stride, from + tap * tap_floats, 1, task.lane_count);
      }
    }
  }

  ConvPass pass_;
  int64_t x_partner_, y_partner_;         // of their cells; 0: they are numbers
  std::unique_ptr<const Step> fallback_;  // of a pass over cells
  GradWeightBlocking cut_;
  int64_t slots_;
  int64_t taps_;
  bool copies_rows_;
  int64_t sum_floats_ = 0;
  size_t sum_bytes_ = 0, panel_bytes_ = 0, raw_bytes_ = 0, row_bytes_ = 0, list_bytes_ = 0, slot_bytes_ = 0;
};

class DenseGradWeightCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.dense_grad_weight"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != ConvPassKind::kGradWeight)
      return Support::no("computes grad_weight only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DenseGradWeightStep>(CellPass{.pass = std::get<ConvPass>(pass)}, nullptr);
  }
};

class Bf16GradWeightCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.bf16_grad_weight"; }
  Support supports(const problem::Pass& pass) const override {
    const Support dense = dense_grad_weight().supports(pass);
    if (!dense.accepted()) return dense;
    if (const auto reason = unfit_for_cells(std::get<ConvPass>(pass))) return Support::no(*reason);
    return dense;
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DenseGradWeightStep>(pass_over_cells(std::get<ConvPass>(pass)),
                                                 dense_grad_weight().make_step(pass));
  }
};

}  // namespace

const Candidate& bf16_grad_weight() {
  static const Bf16GradWeightCandidate instance;
  return instance;
}

const Candidate& dense_grad_weight() {
  static const DenseGradWeightCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
