// SPDX-License-Identifier: Apache-2.0
// w[o, i, t] = Σ_p x[i, p·stride + offset(t)] · y[o, p] of BF16 or FP16 in the tile registers of AMX.
//
// A register adds over 32 positions, where that of dense_grad_weight.cpp adds over 16 of two images. A task
// copies a box of positions, pixels of x beside each other for every channel and pairs of pixels of y beside
// each other for 32 channels, both with the same gaps for the halo: then a tap is a shift of the copy of x,
// and all positions of the box are one long sum. Channels of x are rows; where they are fewer than a register
// has, taps are rows, too. Gaps are zeros, which must not meet what is not finite: the copies are looked at,
// and another implementation takes such a pass. Partial sums of the splits are added in order at the end;
// where there is but one, a task stores its sums while they are in L2.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/dense/tile_grad_weight_copies.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/cell_tiles.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kMostTaps = 1024;     // along an axis
constexpr int64_t kPiecesAtOnce = 16;   // of 32 rows and 32 lanes: 32 KiB, which stay in L1 for all taps
constexpr int64_t kFewestChannels = 4;  // of either side: with fewer, registers are nearly empty
constexpr int64_t kFewestRows = 8;
constexpr int64_t kRowsAtOnce = 128;  // that are stored together

class TileGradWeightStep final : public Step {
 public:
  TileGradWeightStep(const ConvPass& pass, std::unique_ptr<const Step> fallback, const Machine& machine)
      : cut_(pass),
        fallback_(std::move(fallback)),
        places_(places_of(cut_.pass)),
        copies_(cut_),
        slots_(std::min<int64_t>(machine.cpu.threads, tasks())),
        sum_bytes_(cut_.splits > 1 ? part_bytes<float>(tasks() * cut_.sum_floats()) : 0),
        slot_bytes_(copies_.bytes() + (cut_.splits > 1 ? 0 : part_bytes<float>(cut_.sum_floats()))) {}

  std::string describe() const override {
    return fmt::format(
        "tiles of up to 32 rows x 32 lanes; {} tasks: {} splits of {}, {} groups, {} blocks of {} x "
        "channels, "
        "{} blocks of {} y channels; {} copies of x, {} taps as rows",
        tasks(), cut_.splits, to_string(cut_.grid), cut_.pass.groups, cut_.row_blocks, cut_.row_block,
        cut_.lane_blocks, cut_.lane_block, cut_.phases, cut_.folded_taps);
  }

  size_t workspace_bytes() const override {
    return std::max(sum_bytes_ + static_cast<size_t>(slots_) * slot_bytes_, fallback_->workspace_bytes());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* sums = reinterpret_cast<float*>(workspace);
    std::atomic<bool> sound{true};
    const auto sum = [&](int64_t index, int64_t slot) {
      TileGradWeightTask task = task_of(index % cut_.blocks());
      std::byte* scratch = workspace + sum_bytes_ + static_cast<size_t>(slot) * slot_bytes_;
      copies_.set_scratch(scratch, task);
      task.sums = cut_.splits > 1 ? sums + index * cut_.sum_floats()
                                  : reinterpret_cast<float*>(scratch + copies_.bytes());
      sum_split(bindings, task, index / cut_.blocks());
      if (!task.sound) sound.store(false, std::memory_order_relaxed);
      if (cut_.splits == 1) store(bindings, task);
    };
    const auto finish = [&](int64_t block, int64_t) {
      TileGradWeightTask task = task_of(block);
      task.sums = sums + block * cut_.sum_floats();
      store(bindings, task);
    };
    run_stages(*context.pool, slots_, tasks(), sum, cut_.splits > 1 ? cut_.blocks() : 0, finish);
    if (!sound) fallback_->run(bindings, workspace, context);
  }

 private:
  int64_t tasks() const { return cut_.blocks() * cut_.splits; }

  TileGradWeightTask task_of(int64_t block) const {
    TileGradWeightTask task;
    task.row_first = block % cut_.row_blocks * cut_.row_block;
    task.row_count = std::min(cut_.row_block, cut_.pass.x_channels_per_group() - task.row_first);
    block /= cut_.row_blocks;
    task.lane_first = block % cut_.lane_blocks * cut_.lane_block;
    task.lane_count = std::min(cut_.lane_block, cut_.pass.y_channels_per_group() - task.lane_first);
    task.group = block / cut_.lane_blocks;
    return task;
  }

  void sum_split(const Bindings& bindings, TileGradWeightTask& task, int64_t split) const {
    const int64_t first = split * cut_.boxes_per_split;
    const int64_t last = std::min(first + cut_.boxes_per_split, cut_.grid.count());
    kernels::cpu::CellTiles registers(cell_type(cut_.pass.x.dtype));
    for (int64_t index = first; index < last; ++index) {
      const BoxGrid::Box box = cut_.grid.at(index);
      const TileSpace space(cut_.axes, box.size);
      // On the stack, not in the workspace: a caller who shares that by mistake gets wrong numbers, not a
      // crash.
      int64_t pieces[kMostPieces];
      const int64_t count = list_pieces(box, space, pieces);
      copies_.copy_y(bindings, task, box, space);
      copies_.copy_x(bindings, task, box, space);
      for (int64_t piece = 0; piece < count; piece += kPiecesAtOnce)
        multiply(task, space, pieces + piece, std::min(kPiecesAtOnce, count - piece),
                 index > first || piece > 0, registers);
    }
  }

  // Pieces with a position among them: their first cells.
  int64_t list_pieces(const BoxGrid::Box& box, const TileSpace& space, int64_t* pieces) const {
    int64_t count = 0, next = 0;
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t d = 0; d < box.size[1]; ++d)
        for (int64_t h = 0; h < box.size[2]; ++h) {
          const int64_t row = n * space.step[0] + d * space.step[1] + h * space.step[2];
          for (next = std::max(next, row / kPiece); next * kPiece < row + box.size[3]; ++next)
            pieces[count++] = next * (kPiece / 2);
        }
    return count;
  }

  // What some pieces add to sums[panel][tap][folded tap][channel][width].
  void multiply(const TileGradWeightTask& task, const TileSpace& space, const int64_t* pieces, int64_t count,
                bool accumulate, kernels::cpu::CellTiles& registers) const {
    int64_t b_offsets[kPiecesAtOnce];
    const int64_t rows = task.row_count * cut_.folded_taps;
    kernels::cpu::TileProduct tile;
    tile.a_stride = space.pitch / 2;
    tile.offsets = pieces;
    tile.b_offsets = b_offsets;
    tile.inner = count;
    tile.outer = kPiece / 2;
    tile.outer_stride = 1;
    tile.b = task.y;
    tile.accumulate = accumulate;
    float* sums = task.sums;
    for (int64_t lane = 0; lane < task.lane_count; lane += tile.width) {
      tile.width = tile.b_outer_stride = tile.c_stride = task.width_at(lane);
      for (int64_t i = 0; i < count; ++i) b_offsets[i] = pieces[i] * tile.width;
      if (rows <= kernels::cpu::kRegisterRows)
        for (int64_t tap = 0; tap < cut_.taps; tap += 2) {
          const bool two = tap + 1 < cut_.taps;
          tile.a[0] = at_tap(task, space, tap);
          if (two) tile.a[1] = at_tap(task, space, tap + 1);
          tile.rows = static_cast<int>(two ? 2 * rows : rows);
          tile.c = sums + tap * rows * tile.width;
          registers.product(tile, static_cast<int>(rows));
        }
      else
        for (int64_t row = 0; row < rows; row += tile.rows) {
          tile.rows = static_cast<int>(kernels::cpu::next_register_rows(rows - row));
          const int upper = (tile.rows + 1) / 2;
          for (int64_t tap = 0; tap < cut_.taps; ++tap) {
            tile.a[0] = at_tap(task, space, tap) + row * tile.a_stride;
            tile.a[1] = tile.a[0] + upper * tile.a_stride;
            tile.c = sums + (tap * rows + row) * tile.width;
            registers.product(tile, upper);
          }
        }
      tile.b += space.numbers / 2 * tile.width;
      sums += cut_.taps * rows * tile.width;
    }
  }

  // Where the tap's copy of the first channel begins: at any number, so possibly within a cell.
  const float* at_tap(const TileGradWeightTask& task, const TileSpace& space, int64_t tap) const {
    int64_t phase = 0, phases = 1, shift = 0;
    const bool folded = cut_.folded_taps > 1;
    for (size_t i = folded ? cut_.folded_from : 3; i-- > 0;) {
      const TileAxis& axis = cut_.axes[i];
      const auto t = static_cast<size_t>(tap % cut_.pass.axes[i].kernel);
      tap /= cut_.pass.axes[i].kernel;
      phase += axis.phase_of[t] * phases;
      phases *= static_cast<int64_t>(axis.residues.size());
      shift += axis.steps_of[t] * space.step[i + 1];
    }
    const uint16_t* copy = folded ? task.folded : task.x;
    return reinterpret_cast<const float*>(copy + phase * cut_.folded_taps * task.row_count * space.pitch +
                                          shift);
  }

  // Weights in the order in which they follow each other in memory, as many at once as do.
  void store(const Bindings& bindings, const TileGradWeightTask& task) const {
    const ConvPass& pass = cut_.pass;
    const auto& s = pass.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass.w.dtype));
    const int64_t taps = cut_.taps * cut_.folded_taps, channels = task.row_count;
    const bool channels_last = s[1] == 1 && taps > 1;
    alignas(64) float rows[kRowsAtOnce * TileGradWeightCut::kLanes];
    const float* sums = task.sums;
    std::byte* base =
        static_cast<std::byte*>(bindings[pass.w.operand]) +
        ((task.group * pass.y_channels_per_group() + task.lane_first) * s[0] + task.row_first * s[1]) * bytes;
    for (int64_t lane = 0, width; lane < task.lane_count; lane += width) {
      width = task.width_at(lane);
      const int64_t lanes = std::min(width, task.lane_count - lane);
      int64_t first = 0, held = 0;  // where those that are held go
      const auto flush = [&] {
        std::byte* out = base + first * bytes;
        if (held == 1)
          store_row(pass.w.dtype, out, s[0], rows, 1, lanes);
        else if (held > 1)
          store_turned(pass.w.dtype, out, s[0], rows, width, held, lanes);
        held = 0;
      };
      const int64_t outer = channels_last ? taps : channels, inner = channels_last ? channels : taps;
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j) {
          const int64_t tap = channels_last ? i : j, channel = channels_last ? j : i;
          const int64_t at = channel * s[1] + places_[static_cast<size_t>(tap)];
          if (held == kRowsAtOnce || at != first + held) flush();
          if (held == 0) first = at;
          add_splits(sums + (tap * channels + channel) * width, width, rows + held++ * width);
        }
      flush();
      sums += taps * channels * width;
      base += width * s[0] * bytes;
    }
  }

  static std::vector<int64_t> places_of(const ConvPass& pass) {
    std::vector<int64_t> places;
    const auto& s = pass.w.strides;
    for (int64_t d = 0; d < pass.axes[0].kernel; ++d)
      for (int64_t h = 0; h < pass.axes[1].kernel; ++h)
        for (int64_t w = 0; w < pass.axes[2].kernel; ++w) places.push_back(d * s[2] + h * s[3] + w * s[4]);
    return places;
  }

  void add_splits(const float* part, int64_t width, float* out) const {
    std::copy_n(part, width, out);
    const int64_t step = cut_.blocks() * cut_.sum_floats();
    for (int64_t split = 1; split < cut_.splits; ++split) {
      part += step;
      for (int64_t i = 0; i < width; ++i) out[i] += part[i];
    }
  }

  TileGradWeightCut cut_;
  std::unique_ptr<const Step> fallback_;
  std::vector<int64_t> places_;  // of the taps among the weights of a channel
  TileGradWeightCopies copies_;
  int64_t slots_;
  size_t sum_bytes_, slot_bytes_;
};

std::optional<Reason> unfit(const ConvPass& pass, const Machine& machine) {
  if (auto reason = unfit_for_tile_types(pass, machine)) return reason;
  int64_t taps = 1;
  for (const problem::Window& w : pass.axes) {
    if (w.kernel > kMostTaps) return "the kernel has too many taps";
    taps *= w.kernel;
  }
  const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group();
  if (std::min(x * taps, y) < kFewestChannels || x * taps < kFewestRows)
    return "a group has too few channels to fill registers with them";
  if (!TileGradWeightCut(pass).fits()) return "windows reach too far for a copy of them";
  return std::nullopt;
}

std::unique_ptr<const Step> step(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<TileGradWeightStep>(pass, dense_grad_weight().make_step(pass, machine), machine);
}

}  // namespace

const Candidate& amx_places_grad_weight() {
  static const ConvCandidate instance(
      {"cpu.amx_places_grad_weight", kGradWeights, unfit, amx_places_grad_weight_effort, step});
  return instance;
}

}  // namespace retrograd::engines::cpu
