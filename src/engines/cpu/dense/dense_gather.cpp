// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j·source_step + offset(t)] · weight[k, m, t]
//
// A task is one box of positions and a block of result channels of one group. For each block of source
// channels it copies a strip, unless the source can be read in place, then runs all tiles of rows (positions)
// × `width` result channels over it; sums of the box stay in a buffer [phase][position][m] until the last
// block is done. Strip and sums stay in L2, from where packed weights stream through L1 for each tile.
//
// A tile's rows are neighbours along W that have the same live taps, neighbours along H at the borders of W,
// or images at one pixel: taps that read outside the source are left out. Only where the live taps change
// from one neighbour to the next and the plane is too low for columns is the strip padded with zeros. That
// multiplies a weight by 0 where the mathematics skips it, which is the same unless the weight is not finite:
// weights are looked at while they are packed, and with such a one tiles end where the live taps change.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/dense_results.h"
#include "engines/cpu/dense/dense_sources.h"
#include "engines/cpu/dense/dense_tiles.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/cpu/dense/weight_panels.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kManyGroups = 8;  // half of them are lines of memory apart

// Whether weights of one tap, whose result channels lie side by side, are used so few times that packing them
// would take as long.
bool reads_weights_in_place(const ConvPass& pass, const DenseBlocking& cut) {
  constexpr int64_t kMostPositions = 64;
  const int64_t m_stride = is_forward(pass) ? pass.w.strides[0] : pass.w.strides[1];
  return cut.phases.size() == 1 && cut.most_taps == 1 && m_stride == 1 && is_plain(pass.w, pass.rounding) &&
         result_channels(pass) % cut.width == 0 && count_of(cut.grid.total) <= kMostPositions;
}

class DenseGatherStep final : public Step {
 public:
  // With a fallback for numbers that are too small for their cells, where the pass is over cells.
  DenseGatherStep(const CellPass& cells, std::unique_ptr<const Step> fallback, const Machine& machine)
      : pass_(joined_rows(is_forward(cells.pass) ? without_idle_places(cells.pass) : cells.pass)),
        partner_(is_forward(pass_) ? cells.x : cells.y),
        tiles_(cells.tiles),
        type_(cells.type),
        cut_(plan_dense_gather(pass_, widest_vectors_of(machine), room_in(machine.cpu.caches),
                               partner_ != 0 ? vectors_of(machine).floats : 0, tiles_)),
        panels_(pass_, cut_, machine.cpu.threads, cells.w != 0, cells.weights_together ? 0 : cells.w, type_,
                cells.rest),
        sources_(pass_, cut_, cells),
        results_(pass_, cut_),
        fallback_(std::move(fallback)) {
    for (const DensePhase& phase : cut_.phases)
      pads_ |= phase.taps > 0 && !cut_.skips_dead_taps[2] && phase.axes[2].leaves_source();
    // Weights that may meet zeros are looked at while they are packed.
    weights_in_place_ = partner_ == 0 && !pads_ && reads_weights_in_place(pass_, cut_);
    direct_ = !tiles_ && results_.are_direct(partner_ != 0);
    slots_.count = std::min<int64_t>(machine.cpu.threads, cut_.tasks(pass_.groups));
    slots_.shared.bytes = panels_.bytes() + sources_.shared_bytes();
    Parts& own = slots_.own;
    begins_ = own.add<float>(bias_floats(pass_, cut_.m_block));
    const bool one_turn = cut_.channels_per_block == source_channels(pass_) && cut_.most_taps <= kTapsAtOnce;
    sums_ = own.add<float>(direct_ && one_turn ? 0 : results_.sum_floats());
    strip_ = {std::exchange(own.bytes, own.bytes + sources_.strip_bytes())};
    turned_ = {std::exchange(own.bytes, own.bytes + sources_.turned_bytes())};
    row_ = own.add<float>(results_.row_floats());
    if (!cut_.whole_images) return;
    block_ = own.add<float>(panels_.block_floats(cut_.channels_per_block));
    pack_ = own.add<float>(panels_.scratch_floats());
  }

  std::string describe() const override {
    return fmt::format(
        "tiles of {} positions x {} channels; {} tasks: {} groups, {}, {} blocks of {} result channels; "
        "strips "
        "of {} source channels{}{}; {} phases of up to {} taps",
        tiles_ ? kernels::cpu::kTileRegisterRows : cut_.vectors.tile_rows(cut_.width), cut_.width,
        cut_.tasks(pass_.groups), pass_.groups, to_string(cut_.grid), cut_.m_blocks, cut_.m_block,
        cut_.channels_per_block, sources_.in_place() ? " read in place" : "",
        cut_.shares_strips ? " for all tasks" : "", cut_.phases.size(), cut_.most_taps);
  }

  size_t workspace_bytes() const override {
    return std::max(slots_.bytes(), fallback_ ? fallback_->workspace_bytes() : 0);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* panels = reinterpret_cast<float*>(workspace);
    auto* shared = reinterpret_cast<float*>(workspace + panels_.bytes());
    const float* weights = weights_in_place_ ? static_cast<const float*>(bindings[pass_.w.operand]) : panels;
    std::atomic<bool> sound{true}, finite{true};
    const auto judge = [&](bool task_is_sound) {
      if (!task_is_sound) sound.store(false, std::memory_order_relaxed);
    };
    const auto task_of = [&](int64_t index, int64_t slot) {
      return make_task(index, slots_.at(workspace, slot));
    };
    const auto prepare = [&](int64_t index, int64_t slot) {
      if (index >= panel_tasks()) {
        DenseTask task = task_of(sources_.task_of(index - panel_tasks()), slot);
        sources_.share(bindings, task, index - panel_tasks(), shared);
        return judge(task.sound);
      }
      const PanelFacts facts = panels_.pack(bindings, index, slot, panels, pads_);
      if (!facts.finite) finite.store(false, std::memory_order_relaxed);
      judge(facts.large);
    };
    const auto compute = [&](int64_t index, int64_t slot) {
      if (!sound.load(std::memory_order_relaxed)) return;
      DenseTask task = task_of(index, slot);
      task.masked = !finite.load(std::memory_order_relaxed);
      run_task(bindings, task, weights, shared);
      judge(task.sound);
    };
    // Groups that share lines of memory are one thread's, or those that two threads compute lie far apart.
    const int64_t together = cut_.groups_inside ? pass_.groups * cut_.m_blocks : 1;
    const int64_t half =
        pass_.groups >= kManyGroups && !cut_.groups_inside ? ceil_div(cut_.tasks(pass_.groups), 2) : 0;
    const auto compute_together = [&](int64_t index, int64_t slot) {
      const int64_t first = (half == 0 ? index : index % 2 * half + index / 2) * together;
      for (int64_t i = 0; i < together; ++i) compute(first + i, slot);
    };
    run_stages(*context.pool, slots_.count, panel_tasks() + sources_.shared_pieces(), prepare,
               cut_.tasks(pass_.groups) / together, compute_together);
    if (!sound) fallback_->run(bindings, workspace, context);
  }

 private:
  // Pieces of the weights that are packed for all tasks.
  int64_t panel_tasks() const { return cut_.whole_images || weights_in_place_ ? 0 : panels_.tasks(); }

  DenseTask make_task(int64_t index, std::byte* memory) const {
    DenseTask task;
    task.m_first = index % cut_.m_blocks * cut_.m_block;
    task.m_count = std::min(cut_.m_block, result_channels(pass_) - task.m_first);
    index /= cut_.m_blocks;
    if (cut_.groups_inside) {
      task.group = index % pass_.groups;
      task.box = cut_.grid.at(index / pass_.groups);
    } else {
      task.group = index / cut_.grid.count();
      task.box = cut_.grid.at(index % cut_.grid.count());
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t step = cut_.phases.front().axes[axis].source_step;
      task.start[axis] = (cut_.shares_strips ? 0 : task.box.first[axis + 1] * step) + cut_.lowest[axis];
      if (cut_.skips_dead_taps[axis]) task.start[axis] = std::max<int64_t>(task.start[axis], 0);
    }
    task.begins = begins_.in(memory);
    task.sums = sums_.in(memory);
    task.strip = strip_.in(memory);
    task.turned = turned_.in(memory);
    task.row = row_.in(memory);
    task.block = block_.in(memory);
    task.pack = pack_.in(memory);
    return task;
  }

  void run_task(const Bindings& bindings, DenseTask& task, const float* panels, float* shared) const {
    const int64_t all = source_channels(pass_);
    task.bias = load_bias(pass_, bindings, task.group * result_channels(pass_) + task.m_first, task.m_count,
                          task.begins);
    if (task.bias != nullptr) {
      std::fill(task.begins + task.m_count, task.begins + cut_.m_block, 0.0F);
      if (partner_ != 0) task.sound &= cells_may_begin_with(task.bias, task.m_count);
    }
    for (int64_t first = 0; first < all; first += cut_.channels_per_block) {
      const int64_t channels = std::min(cut_.channels_per_block, all - first);
      const DenseSource source = sources_.at(bindings, task, first, channels, shared);
      if (cut_.whole_images) {
        const PanelFacts facts = panels_.pack_block(bindings, task.group, task.m_first, first, channels,
                                                    task.block, task.pack, pads_);
        task.sound &= facts.large;
        task.masked = !facts.finite;
      }
      for (int64_t m = 0; m < task.m_count; m += cut_.m_together)
        for (size_t phase = 0; phase < cut_.phases.size(); ++phase) {
          std::array<DensePanel, kMostPanelsTogether> list;
          size_t count = 0;
          const int64_t end = std::min(m + cut_.m_together, task.m_count);
          for (int64_t i = m; i < end; i += cut_.width_at(task.m_first + i))
            list[count++] = panel_of(bindings, task, panels, phase, i, first, channels);
          DenseTiles(cut_, cut_.phases[phase], task, source, results_.sum_places(task),
                     results_.result_places(phase), type_)
              .run({list.data(), count}, channels, first > 0);
        }
    }
    if (!direct_) results_.store(bindings, task);
  }

  DensePanel panel_of(const Bindings& bindings, const DenseTask& task, const float* panels, size_t phase,
                      int64_t m, int64_t first, int64_t channels) const {
    const int64_t width = cut_.width_at(task.m_first + m);
    DensePanel panel{.first = nullptr,
                     .width = width,
                     .columns = std::min(width, task.m_count - m),
                     .sums = task.sums + static_cast<int64_t>(phase) * results_.phase_floats() + m,
                     .start = task.bias != nullptr ? task.bias + m : nullptr,
                     .of_cells = partner_ != 0,
                     .in_registers = tiles_};
    if (direct_ && first + channels == source_channels(pass_)) {
      std::byte* const results = results_.results_of(bindings, task, phase);
      if (partner_ != 0)
        panel.rounded = reinterpret_cast<uint16_t*>(results) + m;
      else
        panel.results = reinterpret_cast<float*>(results) + m;
    }
    if (cut_.whole_images) {
      panel.first = task.block + cut_.panel_start(phase, task.m_first + m, channels) -
                    cut_.panel_start(0, task.m_first, channels);
    } else if (!weights_in_place_) {
      panel.first = panels_.at(panels, task.group, phase, task.m_first + m, first);
    } else {
      const auto& s = pass_.w.strides;
      panel.one_tap = true;
      panel.k_stride = is_forward(pass_) ? s[1] : s[0];
      panel.first = panels + task.group * pass_.y_channels_per_group() * s[0] + task.m_first + m +
                    first * panel.k_stride;
      for (size_t axis = 0; axis < 3; ++axis)
        panel.first += cut_.phases[phase].axes[axis].taps[0].tap * s[axis + 2];
    }
    return panel;
  }

  ConvPass pass_;
  int64_t partner_;  // of the source's cells; 0: they are numbers
  bool tiles_;       // of cells, with tile registers
  kernels::cpu::CellType type_;
  DenseBlocking cut_;
  WeightPanels panels_;
  DenseSources sources_;
  DenseResults results_;
  std::unique_ptr<const Step> fallback_;  // of a pass over cells
  bool weights_in_place_ = false;
  bool direct_ = false;  // sums become results in the last turn
  bool pads_ = false;
  Slots slots_;
  Part<float> begins_, sums_, strip_, turned_, row_;
  Part<float> block_, pack_;  // where tasks have whole images
};

std::optional<Reason> unfit(const ConvPass& pass, const Machine& /*machine*/) { return unfit_phases(pass); }
std::optional<Reason> unfit_in_pairs(const ConvPass& pass, const Machine& machine) {
  if (auto reason = unfit_phases(pass)) return reason;
  return unfit_for_cells(pass, machine);
}
std::optional<Reason> unfit_in_tiles(const ConvPass& pass, const Machine& machine) {
  if (auto reason = unfit_phases(pass)) return reason;
  return unfit_for_tiles(pass, machine);
}
std::unique_ptr<const Step> step(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<DenseGatherStep>(CellPass{.pass = pass}, nullptr, machine);
}
template <bool kTiles>
std::unique_ptr<const Step> step_over_cells(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<DenseGatherStep>(pass_over_cells(pass, kTiles), step(pass, machine), machine);
}

}  // namespace

const Candidate& amx_gather() {
  static const ConvCandidate instance(
      {"cpu.amx_gather", kGathers, unfit_in_tiles, amx_gather_effort, step_over_cells<true>});
  return instance;
}

const Candidate& bf16_gather() {
  static const ConvCandidate instance(
      {"cpu.bf16_gather", kGathers, unfit_in_pairs, dense_gather_effort, step_over_cells<false>});
  return instance;
}

const Candidate& dense_gather() {
  static const ConvCandidate instance({"cpu.dense_gather", kGathers, unfit, dense_gather_effort, step});
  return instance;
}

}  // namespace retrograd::engines::cpu
