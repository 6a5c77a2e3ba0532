// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p x[i, p·stride + offset(t)] · y[o, p],   p over batch and space
//
// One operand's channels are lanes: a task packs `width` of them to panels [pixel][width]. The other's are
// rows: scalars, read in place where they are plain FP32. For each tap, a list of the positions that read
// inside x says where both lie; tiles of rows × `width` add up over the list. Nothing is padded, so nothing
// is multiplied that the mathematics does not multiply. Partial sums of the splits are added in order at the
// end; where there is but one, a task stores its sums while they are in L2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/grad_weight_operands.h"
#include "engines/cpu/dense/grad_weight_positions.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/layout/transpose.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

CellPass without_idle_cells(CellPass cells) {
  if (cells.x_places.shift == 0) cells.pass = without_idle_places(cells.pass);
  if (cells.tiles) cells.pass = joined_rows(cells.pass);  // longer ones to add over
  return cells;
}

class DenseGradWeightStep final : public Step {
 public:
  // With a fallback for numbers that are too small for their cells, where the pass is over cells.
  DenseGradWeightStep(const CellPass& cells, std::unique_ptr<const Step> fallback, const Machine& machine)
      : cells_(without_idle_cells(cells)),
        pass_(cells_.pass),
        fallback_(std::move(fallback)),
        cut_(plan_grad_weight(pass_, widest_vectors_of(machine), vectors_of(machine),
                              fallback_ ? vectors_of(machine).floats : 0, cells_.tiles)),
        operands_(cells_, cut_),
        slots_(machine.cpu.threads),
        taps_(taps_of(pass_)),
        lane_floats_(taps_ * cut_.row_block * cut_.width),
        sum_floats_(cut_.lane_group * lane_floats_),
        sum_bytes_(cut_.splits > 1 ? part_bytes<float>(tasks() * sum_floats_) : 0),
        slot_bytes_(operands_.panel_bytes() + operands_.raw_bytes() + operands_.copy_bytes() +
                    (cut_.splits > 1 ? 0 : part_bytes<float>(sum_floats_))) {}

  std::string describe() const override {
    return fmt::format(
        "lanes are {} channels, tiles {} wide; {} tasks: {} splits of {}, {} groups of {} blocks of lanes, "
        "{} blocks of {} rows",
        cut_.lanes_are_x ? "x" : "y", cut_.width, tasks(), cut_.splits, to_string(cut_.grid), pass_.groups,
        cut_.lane_blocks, cut_.row_blocks, cut_.row_block);
  }

  size_t workspace_bytes() const override {
    return std::max(sum_bytes_ + static_cast<size_t>(std::min(slots_, tasks())) * slot_bytes_,
                    fallback_ ? fallback_->workspace_bytes() : 0);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* sums = reinterpret_cast<float*>(workspace);
    std::atomic<bool> sound{true};
    const auto sum = [&](int64_t index, int64_t slot) {
      std::byte* scratch = workspace + sum_bytes_ + static_cast<size_t>(slot) * slot_bytes_;
      GradWeightTask task = make_task(index % blocks(), scratch);
      float* own = cut_.splits > 1 ? sums + index * sum_floats_ : task.sums;
      sum_split(bindings, task, index / blocks(), own);
      if (!task.sound) sound.store(false, std::memory_order_relaxed);
      if (cut_.splits == 1) store(bindings, task, own);
    };
    const auto finish = [&](int64_t block, int64_t) {
      GradWeightTask task = make_task(block, nullptr);
      store(bindings, task, sums + block * sum_floats_);
    };
    run_stages(*context.pool, slots_, tasks(), sum, cut_.splits > 1 ? blocks() : 0, finish);
    if (!sound) fallback_->run(bindings, workspace, context);
  }

 private:
  int64_t channels(bool of_x) const {
    return of_x ? pass_.x_channels_per_group() : pass_.y_channels_per_group();
  }
  int64_t blocks() const { return cut_.blocks(pass_.groups); }
  int64_t tasks() const { return blocks() * cut_.splits; }

  GradWeightTask make_task(int64_t block, std::byte* scratch) const {
    GradWeightTask task{};
    task.row_first = block % cut_.row_blocks * cut_.row_block;
    task.row_count = std::min(cut_.row_block, channels(!cut_.lanes_are_x) - task.row_first);
    block /= cut_.row_blocks;
    task.lane_block = block % cut_.lane_groups() * cut_.lane_group;
    task.group = block / cut_.lane_groups();
    take_lanes(task, 0);
    if (scratch == nullptr) return task;
    task.panel = reinterpret_cast<float*>(scratch);
    task.raw = reinterpret_cast<float*>(scratch += operands_.panel_bytes());
    task.copy = reinterpret_cast<float*>(scratch += operands_.raw_bytes());
    task.sums = reinterpret_cast<float*>(scratch + operands_.copy_bytes());
    return task;
  }

  // Of the blocks of lanes that a task has, the one that it turns to; false behind the last.
  bool take_lanes(GradWeightTask& task, int64_t index) const {
    if (index == cut_.lane_group || task.lane_block + index == cut_.lane_blocks) return false;
    task.lane_first = cut_.lane_first(task.lane_block + index);
    task.width = cut_.width_at(task.lane_first);
    task.lane_count = std::min(task.width, cut_.lanes - task.lane_first);
    return true;
  }

  // sums[block of lanes][tap][row][width]
  void sum_split(const Bindings& bindings, GradWeightTask& task, int64_t split, float* sums) const {
    const int64_t first = split * cut_.boxes_per_split;
    const int64_t last = std::min(first + cut_.boxes_per_split, cut_.grid.count());
    for (int64_t index = first; index < last; ++index) {
      const BoxGrid::Box box = cut_.grid.at(index);
      const GradWeightLayout scalars = operands_.find_rows(bindings, task, box);
      for (int64_t lane = 0; take_lanes(task, lane); ++lane)
        sum_taps(task, box, scalars, operands_.pack_lanes(bindings, task, box), index > first,
                 sums + lane * lane_floats_);
    }
  }

  void sum_taps(const GradWeightTask& task, const BoxGrid::Box& box, const GradWeightLayout& scalars,
                const GradWeightLayout& panel, bool accumulate, float* out) const {
    GradWeightPositions positions(pass_, cut_.lanes_are_x, cells_.tiles, box, scalars, panel);
    for (int64_t d = 0; d < pass_.axes[0].kernel; ++d)
      for (int64_t h = 0; h < pass_.axes[1].kernel; ++h)
        for (int64_t w = 0; w < pass_.axes[2].kernel; ++w, out += cut_.row_block * task.width)
          multiply(task, scalars.channel, positions.at({d, h, w}), accumulate, out);
  }

  void multiply(const GradWeightTask& task, int64_t channel, const ListedPositions& listed, bool accumulate,
                float* out) const {
    if (listed.count == 0) {
      if (!accumulate) std::fill_n(out, cut_.row_block * task.width, 0.0F);
      return;
    }
    kernels::cpu::TileProduct tile;
    tile.width = task.width;
    tile.offsets = listed.rows;
    tile.b_offsets = listed.panel;
    tile.inner = listed.count;
    tile.outer = listed.run;
    tile.outer_stride = listed.rows_step;
    tile.b_outer_stride = listed.panel_step;
    tile.b = listed.panel_from;
    tile.c_stride = task.width;
    tile.accumulate = accumulate;
    kernels::cpu::CellTiles registers(cells_.type);
    for (int64_t row = 0; row < task.row_count; row += tile.rows) {
      tile.set_rows(listed.rows_from + row * channel, channel,
                    cells_.tiles ? kernels::cpu::next_register_rows(task.row_count - row)
                                 : kernels::cpu::widest_shape().next_tile_rows(task.row_count - row,
                                                                               task.width, channel));
      tile.c = out + row * task.width;
      if (cells_.tiles)
        registers.product(tile);
      else if (fallback_)
        kernels::cpu::bf16_tile_product(tile);
      else
        kernels::cpu::tile_product(tile);
    }
  }

  // All that a task has, where its sums are in their places; what the splits added up comes together first.
  void store(const Bindings& bindings, GradWeightTask& task, float* sums) const {
    for (int64_t lane = 0; take_lanes(task, lane); ++lane, sums += lane_floats_) {
      add_splits(sums, task.width);
      store_block(bindings, task, sums);
    }
  }

  void add_splits(float* total, int64_t width) const {
    const int64_t used = taps_ * cut_.row_block * width;
    for (int64_t split = 1; split < cut_.splits; ++split) {
      const float* part = total + split * blocks() * sum_floats_;
      for (int64_t i = 0; i < used; ++i) total[i] += part[i];
    }
  }

  void store_block(const Bindings& bindings, const GradWeightTask& task, const float* sums) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const int64_t lane_stride = cut_.lanes_are_x ? s[1] : s[0], row_stride = cut_.lanes_are_x ? s[0] : s[1];
    const int64_t h = pass_.axes[1].kernel, w = pass_.axes[2].kernel;
    const bool taps_touch = taps_ > 1 && taps_follow_each_other(pass_);
    std::byte* base = static_cast<std::byte*>(bindings[pass_.w.operand]) +
                      (task.group * pass_.y_channels_per_group() * s[0] + task.lane_first * lane_stride +
                       task.row_first * row_stride) *
                          bytes;
    const int64_t tap_floats = cut_.row_block * task.width;
    const auto tap_at = [&](int64_t tap) {
      return tap / (h * w) * s[2] + tap / w % h * s[3] + tap % w * s[4];
    };
    if (lane_stride == 1) {
      for (int64_t tap = 0; tap < taps_; ++tap)
        store_rows(pass_.w.dtype, base + tap_at(tap) * bytes, row_stride, sums + tap * tap_floats, task.width,
                   task.row_count, task.lane_count);
      return;
    }
    if (row_stride == 1) {
      for (int64_t tap = 0; tap < taps_; ++tap)
        store_turned(pass_.w.dtype, base + tap_at(tap) * bytes, lane_stride, sums + tap * tap_floats,
                     task.width, task.row_count, task.lane_count);
      return;
    }
    if (taps_touch && row_stride == taps_ && lane_stride != taps_ && taps_ * task.lane_count <= kTurnedFloats)
      return store_lanes(base, lane_stride * bytes, task, sums);
    for (int64_t row = 0; row < task.row_count; ++row) {
      std::byte* out = base + row * row_stride * bytes;
      const float* from = sums + row * task.width;
      if (taps_touch) {
        store_turned(pass_.w.dtype, out, lane_stride, from, tap_floats, taps_, task.lane_count);
        continue;
      }
      for (int64_t tap = 0; tap < taps_; ++tap)
        store_row(pass_.w.dtype, out + tap_at(tap) * bytes, lane_stride, from + tap * tap_floats, 1,
                  task.lane_count);
    }
  }

  // Where the taps of a lane's rows follow each other: several rows of it at once.
  void store_lanes(std::byte* base, int64_t lane_bytes, const GradWeightTask& task, const float* sums) const {
    alignas(64) std::array<float, kTurnedFloats> block;
    const int64_t at_once = kTurnedFloats / (taps_ * task.lane_count);
    const int64_t row_bytes = taps_ * static_cast<int64_t>(size_of(pass_.w.dtype));
    for (int64_t row = 0; row < task.row_count; row += at_once) {
      const int64_t rows = std::min(at_once, task.row_count - row), floats = rows * taps_;
      for (int64_t i = 0; i < rows; ++i)
        kernels::cpu::transpose(sums + (row + i) * task.width, cut_.row_block * task.width,
                                block.data() + i * taps_, floats, taps_, task.lane_count);
      for (int64_t lane = 0; lane < task.lane_count; ++lane)
        store_row(pass_.w.dtype, base + lane * lane_bytes + row * row_bytes, 1, block.data() + lane * floats,
                  1, floats);
    }
  }

  static constexpr int64_t kTurnedFloats = 4096;  // in L1

  CellPass cells_;
  const ConvPass& pass_;                  // of the cells
  std::unique_ptr<const Step> fallback_;  // of a pass over cells
  GradWeightBlocking cut_;
  GradWeightOperands operands_;
  int64_t slots_;
  int64_t taps_;
  int64_t lane_floats_, sum_floats_;  // of a block of lanes, of a task
  size_t sum_bytes_, slot_bytes_;
};

std::unique_ptr<const Step> step(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<DenseGradWeightStep>(CellPass{.pass = pass}, nullptr, machine);
}
template <bool kTiles>
std::unique_ptr<const Step> step_over_cells(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<DenseGradWeightStep>(pass_over_cells(pass, kTiles), step(pass, machine), machine);
}

}  // namespace

const Candidate& amx_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.amx_grad_weight", kGradWeights, unfit_for_tiles, amx_grad_weight_effort, step_over_cells<true>});
  return instance;
}

const Candidate& bf16_grad_weight() {
  static const ConvCandidate instance({"cpu.bf16_grad_weight", kGradWeights, unfit_for_cells,
                                       dense_grad_weight_effort, step_over_cells<false>});
  return instance;
}

const Candidate& dense_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.dense_grad_weight", kGradWeights, nullptr, dense_grad_weight_effort, step});
  return instance;
}

}  // namespace retrograd::engines::cpu
