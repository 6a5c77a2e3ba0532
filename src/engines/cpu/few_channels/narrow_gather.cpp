// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j·source_step + offset(t)] · weight[k, m, t]
//
// with positions j as the vector side. A task is a box of positions of one or more groups, or of a part of
// the results of one. Block by block of source channels it copies strips (residue_strips.h) and adds to the
// sums of all its results; a whole plane of results is one long row in the pitch of the strip, the columns
// between two rows being computed and dropped, so that planes of 7 × 7 fill vectors too. Residues of a
// strided grad_input that read through the same offsets are further result channels of one product
// (axis_folds.h); all residues are computed from the same strips, and woven together when they are stored.
//
// Zeros stand for pixels outside the source. They multiply weights that the mathematics skips, which differs
// only if those are not finite: weights are looked at while they are packed, and such a pass runs with masks
// (masked_rows.h). So do strips that are not finite where weights are padded with zeros.
//
// BF16 numbers of two source channels share a cell where the machine multiplies pairs (bf16_rows.h): half as
// many rows of the same length. Blocks with numbers that those products would lose are computed in FP32.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "engines/cpu/axis_phases.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/cells.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/few_channels/narrow_cut.h"
#include "engines/cpu/few_channels/narrow_store.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/few_channels/bf16_rows.h"
#include "kernels/cpu/few_channels/row_sums.h"
#include "kernels/cpu/layout/masked_rows.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;

constexpr int64_t kFloatsPackedPerTask = 16384;
constexpr int64_t kMostPhases = 4096;
constexpr int64_t kMostSourceResidues = 64;
constexpr int64_t kFewTerms = 64;  // where the dense engine would spend its time on turning results over
constexpr int64_t kMostTerms = int64_t{1} << 20;
constexpr int64_t kMostResults = int64_t{1} << 14;  // of a group: the plan lists them
// Fewer products than these take less time than waking a thread.
constexpr int64_t kProductsForThreads = int64_t{1} << 18;

// Positions of one phase, along an axis. Rows of fewer than kShortestRow do not fill a vector.
constexpr int64_t kShortestRow = 4;
int64_t positions_along(const ConvPass& pass, const problem::Window& w) {
  return is_forward(pass) ? w.y : ceil_div(w.x, w.stride);
}
ConvPass with_rows(const ConvPass& pass) { return with_long_rows(pass, kShortestRow, positions_along); }

class NarrowGatherStep final : public Step {
 public:
  // Rows of `pass` are long enough (with_rows()).
  NarrowGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        cut_(plan_narrow(pass, widest_vectors_of(machine), vectors_of(machine))),
        slots_{machine.cpu.threads} {
    const int64_t weights = pass.groups * cut_.group_weights;
    if (std::min(kProductsForThreads, weights) * std::min(kProductsForThreads, count_of(cut_.grid.total)) <
        kProductsForThreads)
      slots_.count = 1;
    weights_in_place_ = reads_weights_in_place();
    packed_ = slots_.shared.add<float>(weights_in_place_ ? 0 : weights);
    if (multiplies_pairs(pass, machine)) pair_channels();
    // Rows are read a little beyond their end.
    const NarrowInPlace& in_place = cut_.in_place;
    const ResidueStrips& strips = in_place.on ? in_place.strips : cut_.strips;
    const int64_t channels =
        in_place.on ? in_place.edge_channels : cut_.groups_at_once * cut_.channels_per_block;
    const bool masks = cut_.leaves_source || cut_.pads_weights;
    const int64_t behind = cut_.vectors.row_overrun();
    Parts& own = slots_.own;
    strip_ = own.add<float>(channels * strips.channel_pitch() + behind);
    sums_ = own.add<float>(cut_.groups_at_once * cut_.group_sums());
    row_ = own.add<float>(ways() * cut_.grid.box[3]);
    start_ = own.add<float>(bias_floats(pass, cut_.groups_at_once * cut_.rows_per_part()));
    bias_ = own.add<float>(bias_floats(pass, cut_.groups_at_once * result_channels(pass)));
    valid_ = own.add<float>(masks ? strips.channel_pitch() + behind : 0);
    // Weights are packed before.
    const int64_t taps =
        cut_.group_weights > 0 ? rows_per_packing_task() * cut_.kernel_taps * result_channels(pass) : 0;
    own.bytes = std::max(own.bytes, part_bytes<float>(taps));
    slots_.count = std::min(slots_.count, std::max(cut_.tasks, packing_tasks()));
  }

  std::string describe() const override {
    return fmt::format(
        "{} x {} results in calls of up to {}, {} tasks: {} of up to {} groups, {} at once, {} parts; strips "
        "of {} of {} "
        "source channels{}",
        cut_.units.size(), ways(), cut_.vectors.row_results(), cut_.tasks, to_string(cut_.grid),
        cut_.groups_per_task, cut_.groups_at_once, cut_.parts(), cut_.channels_per_block,
        source_channels(pass_), pairs_ ? ", pairs of bf16" : "");
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const packed = packed_.in(workspace);
    const float* weights = weights_in_place_ ? static_cast<const float*>(bindings[pass_.w.operand]) : packed;
    std::atomic<bool> finite{true};
    run_tasks(*context.pool, packing_tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      if (!pack_weights(bindings, task, packed, reinterpret_cast<float*>(slots_.at(workspace, slot))))
        finite.store(false, std::memory_order_relaxed);
    });
    const bool masked = !finite && cut_.leaves_source;
    const float* const cells =
        pairs_ && !masked ? pair_weights(*context.pool, packed, cells_.in(workspace)) : nullptr;
    run_tasks(*context.pool, cut_.tasks, slots_.count, [&](int64_t task, int64_t slot) {
      run_task(bindings, task, weights, cells, masked, slots_.at(workspace, slot));
    });
  }

 private:
  // A single source channel has nothing to share a cell with.
  bool multiplies_pairs(const ConvPass& pass, const Machine& machine) const {
    return !unfit_for_bf16_pairs(pass, machine) && source_channels(pass) > 1 && cut_.group_weights > 0;
  }
  int64_t ways() const { return static_cast<int64_t>(cut_.ways.size()); }
  // Whether the weights of a source channel lie in the order of the results, as with patches: packing them
  // would take a tenth of the time of vit_patch_16x16s16_3_768.
  bool reads_weights_in_place() const {
    return !is_forward(pass_) && cut_.products.size() == 1 && cut_.products.front().in_order &&
           !cut_.leaves_source && !cut_.pads_weights && is_plain(pass_.w, pass_.rounding) &&
           taps_follow_each_other(pass_) && pass_.w.strides[1] == cut_.kernel_taps;
  }
  int64_t group_weights() const {
    return weights_in_place_ ? pass_.y_channels_per_group() * pass_.w.strides[0] : cut_.group_weights;
  }
  // Rows of weights are those of one (group, source channel).
  int64_t rows_per_packing_task() const {
    return std::clamp<int64_t>(kFloatsPackedPerTask / (result_channels(pass_) * cut_.kernel_taps), 1,
                               pass_.groups * source_channels(pass_));
  }
  int64_t packing_tasks() const {
    if (cut_.group_weights == 0 || weights_in_place_) return 0;
    return ceil_div(pass_.groups * source_channels(pass_), rows_per_packing_task());
  }

  void pair_channels() {
    pairs_ = true;
    cells_ = slots_.shared.add<float>(pass_.groups * cells_of(cut_.group_weights));
    // No pair is in two blocks.
    if (cut_.channels_per_block < source_channels(pass_))
      cut_.channels_per_block += cut_.channels_per_block % 2;
    if (const CellPass cells = pass_over_cells(pass_); cells.together) cell_source_ = source_of(cells.pass);
  }
  // Where so many weights of all source channels take as many cells.
  int64_t cells_of(int64_t weights) const {
    return weights / source_channels(pass_) * ceil_div(source_channels(pass_), 2);
  }

  // The weights once more, as cells[group][call][pair of k][term][result]; null if some must not be cells.
  const float* pair_weights(runtime::ThreadPool& pool, const float* weights, float* cells) const {
    std::atomic<bool> large{true};
    const auto calls = static_cast<int64_t>(cut_.calls.size());
    run_tasks(pool, pass_.groups * calls, slots_.count, [&](int64_t task, int64_t) {
      const NarrowCall& call = cut_.calls[static_cast<size_t>(task % calls)];
      const int64_t first = task / calls * cut_.group_weights + call.weights;
      const int64_t row = call.count * cut_.products[call.product].terms();
      if (!kernels::cpu::cells_of_rows(weights + first, row, source_channels(pass_), row,
                                       cells + cells_of(first), row)
               .large)
        large.store(false, std::memory_order_relaxed);
    });
    return large ? cells : nullptr;
  }

  // weights[group][call][k][term][result]; whether all were finite.
  bool pack_weights(const Bindings& bindings, int64_t task, float* weights, float* taps) const {
    const int64_t rows = rows_per_packing_task(), all = pass_.groups * source_channels(pass_);
    const int64_t row_floats = result_channels(pass_) * cut_.kernel_taps;
    bool finite = true;
    for (int64_t row = task * rows, end = std::min((task + 1) * rows, all); row < end;) {
      const int64_t group = row / source_channels(pass_), k = row % source_channels(pass_);
      const int64_t count = std::min(end - row, source_channels(pass_) - k);
      for (int64_t i = 0; i < count; ++i) load_source_taps(bindings, group, k + i, taps + i * row_floats);
      finite &= all_finite(taps, count * row_floats);
      cut_.spread_weights(taps, k, count, weights + group * cut_.group_weights);
      row += count;
    }
    return finite;
  }

  // taps[m][tap] of source channel k.
  void load_source_taps(const Bindings& bindings, int64_t group, int64_t k, float* taps) const {
    const int64_t first = group * pass_.y_channels_per_group();
    for (int64_t m = 0; m < result_channels(pass_); ++m, taps += cut_.kernel_taps)
      load_taps(pass_, bindings, first + (is_forward(pass_) ? m : k), is_forward(pass_) ? k : m, taps);
  }

  // A task while it runs.
  struct Task {
    size_t first_call, last_call;
    BoxGrid::Box box;
    float *strip, *sums;
    float* start;  // what the rows of sums begin with, group by group; null: zeros
    float* valid;  // 1 for each place of a strip that is inside the source, where that is asked for
    const float *weights, *cells;  // of all groups; cells are null where pairs are not multiplied
    bool masked;                   // zeros outside the source are not multiplied
  };

  void run_task(const Bindings& bindings, int64_t index, const float* weights, const float* cells,
                bool masked, std::byte* memory) const {
    const int64_t boxes = cut_.grid.count(), part = index / boxes % cut_.parts();
    const int64_t first_group = index / boxes / cut_.parts() * cut_.groups_per_task;
    Task task{.first_call = cut_.first_call[static_cast<size_t>(part)],
              .last_call = cut_.first_call[static_cast<size_t>(part) + 1],
              .box = cut_.grid.at(index % boxes),
              .strip = strip_.in(memory),
              .sums = sums_.in(memory),
              .start = pass_.bias ? start_.in(memory) : nullptr,
              .valid = valid_.in(memory),
              .weights = weights,
              .cells = cells,
              .masked = masked};
    NarrowSums stored{
        .box = task.box,
        .first_unit = part * cut_.units_per_part,
        .last_unit = std::min((part + 1) * cut_.units_per_part, static_cast<int64_t>(cut_.units.size())),
        .sums = task.sums,
        .row = row_.in(memory)};
    const int64_t end = std::min(first_group + cut_.groups_per_task, pass_.groups);
    for (int64_t group = first_group; group < end; group += cut_.groups_at_once) {
      stored.group = group;
      stored.groups = std::min(cut_.groups_at_once, end - group);
      const bool sound = task.start == nullptr || list_starts(bindings, stored, bias_.in(memory), task.start);
      task.cells = sound ? cells : nullptr;
      for (int64_t i = 0; i < stored.groups; ++i)
        clear_empty(task, start_of(task, i), task.sums + i * cut_.group_sums());
      if (cut_.in_place.on) {
        gather_in_place(bindings, group, task);
      } else if (cut_.group_weights > 0) {
        gather_strips(bindings, group, stored.groups, task);
      }
      store_narrow(pass_, cut_, bindings, stored);
    }
  }

  const float* start_of(const Task& task, int64_t group) const {
    return task.start == nullptr ? nullptr : task.start + group * cut_.rows_per_part();
  }

  // The bias of each row of sums, from that of the channels; whether products of pairs may be added to it.
  bool list_starts(const Bindings& bindings, const NarrowSums& sums, float* bias, float* start) const {
    const int64_t channels = result_channels(pass_);
    load_bias(pass_, bindings, sums.group * channels, sums.groups * channels, bias);
    const bool sound = cells_may_begin_with(bias, sums.groups * channels);
    for (int64_t group = 0; group < sums.groups; ++group, bias += channels, start += cut_.rows_per_part())
      for (int64_t i = sums.first_unit; i < sums.last_unit; ++i) {
        const NarrowUnit& unit = cut_.units[static_cast<size_t>(i)];
        std::fill_n(start + unit.row * ways(), ways(), bias[unit.channel]);
      }
    return sound;
  }

  // Results that no tap reaches.
  void clear_empty(const Task& task, const float* start, float* sums) const {
    for (size_t i = task.first_call; i < task.last_call; ++i) {
      const NarrowCall& call = cut_.calls[i];
      const NarrowProduct& product = cut_.products[call.product];
      if (product.terms() > 0) continue;
      for (int64_t result = 0; result < call.count; ++result) {
        const int64_t row = call.row + result * product.row_step;
        std::fill_n(sums + row * cut_.out_pitch, cut_.out_pitch, start != nullptr ? start[row] : 0.0F);
      }
    }
  }

  // Where there are several groups, all of their source channels are one block.
  void gather_strips(const Bindings& bindings, int64_t group, int64_t groups, const Task& task) const {
    const auto& size = task.box.size;
    const float* loaded = nullptr;
    // Sums that pairs did not make may be too small to add pairs to.
    bool paired = task.cells != nullptr;
    for (int64_t k = 0; k < source_channels(pass_); k += cut_.channels_per_block) {
      const int64_t channels = std::min(cut_.channels_per_block, source_channels(pass_) - k);
      const int64_t first = group * source_channels(pass_) + k;
      paired = paired && load_cells(bindings, first, groups, channels, task);
      if (!paired) load_source(bindings, cut_.strips, first, groups * channels, task.box, task.strip);
      const bool masked =
          !paired &&
          (task.masked ||
           (cut_.pads_weights && !all_finite(task.strip, groups * channels * cut_.strips.channel_pitch())));
      if (masked && loaded == nullptr) loaded = load_valid(cut_.strips, task.box, task.valid);
      const float* valid = masked ? loaded : nullptr;
      kernels::cpu::RowSums rows;
      rows.outer = paired ? ceil_div(channels, 2) : channels;
      rows.outer_stride = cut_.strips.channel_pitch();
      rows.accumulate = k > 0;
      rows.count = cut_.whole_planes ? (size[2] - 1) * cut_.row_pitch + size[3] : size[3];
      for (int64_t i = 0; i < groups; ++i) {
        rows.start = start_of(task, i);
        add_block(task, group + i, k, task.strip + i * rows.outer * rows.outer_stride,
                  task.sums + i * cut_.group_sums(), rows, valid, paired);
      }
    }
  }

  // The box is a part of one row.
  void gather_in_place(const Bindings& bindings, int64_t group, const Task& task) const {
    const int64_t lanes = kernels::cpu::widest_shape().row_overrun(), all = source_channels(pass_);
    const int64_t first = task.box.first[3], end = first + task.box.size[3];
    const StripAxis& w = cut_.in_place.strips.axis(2);
    const int64_t begin = std::clamp(-w.lowest_offset, first, end);
    const int64_t inside = std::max<int64_t>(std::min(end, w.size - w.highest_offset) - begin, 0);
    const int64_t stop = begin + inside / lanes * lanes;
    // A call writes up to a vector too much, so from the left to the right.
    gather_edge(bindings, group, task, first, begin);
    const auto& s = source_of(pass_).strides;
    const auto* source = static_cast<const float*>(bindings[source_of(pass_).operand]) +
                         task.box.first[0] * s[0] + group * all * s[1] + begin + w.lowest_offset;
    for (int64_t k = 0; k < all && begin < stop; k += cut_.in_place.channels) {
      kernels::cpu::RowSums rows;
      rows.outer = std::min(cut_.in_place.channels, all - k);
      rows.outer_stride = s[1];
      rows.accumulate = k > 0;
      rows.start = task.start;
      rows.count = stop - begin;
      rows.fetch_next = true;
      add_block(task, group, k, source + k * s[1], task.sums + begin - first, rows, nullptr);
    }
    gather_edge(bindings, group, task, stop, end);
  }

  void gather_edge(const Bindings& bindings, int64_t group, const Task& task, int64_t begin,
                   int64_t end) const {
    if (begin >= end) return;
    const NarrowInPlace& in_place = cut_.in_place;
    const int64_t all = source_channels(pass_);
    BoxGrid::Box box = task.box;
    box.first[3] = begin;
    box.size[3] = end - begin;
    for (int64_t k = 0; k < all; k += in_place.edge_channels) {
      kernels::cpu::RowSums rows;
      rows.outer = std::min(in_place.edge_channels, all - k);
      rows.outer_stride = in_place.strips.channel_pitch();
      rows.accumulate = k > 0;
      rows.start = task.start;
      rows.count = end - begin;
      load_source(bindings, in_place.strips, group * all + k, rows.outer, box, task.strip);
      const float* valid = task.masked ? load_valid(in_place.strips, box, task.valid) : nullptr;
      add_block(task, group, k, task.strip, task.sums + begin - task.box.first[3], rows, valid);
    }
  }

  void load_source(const Bindings& bindings, const ResidueStrips& strips, int64_t channel, int64_t channels,
                   const BoxGrid::Box& box, float* strip) const {
    const PassTensor& tensor = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[tensor.operand]);
    strips.load(tensor, pass_.rounding, base + channel * tensor.strides[1] * bytes, channels, box, strip);
    std::fill_n(strip + channels * strips.channel_pitch(), kernels::cpu::widest_shape().row_overrun(), 0.0F);
  }

  // Strips of cells, group by group, of `channels` source channels of each, of which `channel` is the first.
  // False where products of pairs would lose a number, or make NaN of a padded weight.
  bool load_cells(const Bindings& bindings, int64_t channel, int64_t groups, int64_t channels,
                  const Task& task) const {
    const int64_t pitch = cut_.strips.channel_pitch(), rows = ceil_div(channels, 2);
    const PassTensor& source = source_of(pass_);
    const std::byte* from = static_cast<const std::byte*>(bindings[source.operand]) +
                            channel * source.strides[1] * static_cast<int64_t>(sizeof(uint16_t));
    kernels::cpu::CellFacts facts;
    if (cell_source_ && reinterpret_cast<uintptr_t>(from) % sizeof(float) == 0) {
      cut_.strips.load(*cell_source_, OperandRounding::kNone, from, groups * rows, task.box, task.strip);
      facts =
          kernels::cpu::judge_cells(task.strip, 0, 1, groups * rows * pitch, kernels::cpu::CellType::kBf16);
    } else {
      load_source(bindings, cut_.strips, channel, groups * channels, task.box, task.strip);
      for (int64_t i = 0; i < groups; ++i)
        facts &= kernels::cpu::cells_of_rows(task.strip + i * channels * pitch, pitch, channels, pitch,
                                             task.strip + i * rows * pitch, pitch);
    }
    std::fill_n(task.strip + groups * rows * pitch, kernels::cpu::widest_shape().row_overrun(), 0.0F);
    return facts.large && (facts.finite || !cut_.pads_weights);
  }

  // One channel of strips as if all of the source were ones.
  static const float* load_valid(const ResidueStrips& strips, const BoxGrid::Box& box, float* valid) {
    const float one = 1;
    strips.load(PassTensor{}, OperandRounding::kNone, reinterpret_cast<const std::byte*>(&one), 1, box,
                valid);
    std::fill_n(valid + strips.channel_pitch(), kernels::cpu::widest_shape().row_overrun(), 0.0F);
    return valid;
  }

  // rows.start is that of the group's first row of sums.
  // sums[row][plane][row of positions] += the products of rows.outer source channels from k on; with `valid`
  // those alone that are inside the source.
  void add_block(const Task& task, int64_t group, int64_t k, const float* source, float* sums,
                 kernels::cpu::RowSums rows, const float* valid, bool paired = false) const {
    const auto& extent = cut_.strips.extent();
    const auto& size = task.box.size;
    const float* const start = rows.start;
    const float* const weights =
        paired ? task.cells + cells_of(group * cut_.group_weights) : task.weights + group * group_weights();
    for (size_t i = task.first_call; i < task.last_call; ++i) {
      const NarrowCall& call = cut_.calls[i];
      const NarrowProduct& product = cut_.products[call.product];
      if (product.terms() == 0) continue;
      rows.offsets = product.offsets.data();
      rows.inner = product.terms();
      rows.out_stride = product.row_step * cut_.out_pitch;
      rows.start = start == nullptr ? nullptr : start + call.row;
      rows.start_step = product.row_step;
      rows.results = static_cast<int>(call.count);
      const int64_t row = call.count * product.terms();
      rows.weights = weights_in_place_ ? weights + call.first + k * pass_.w.strides[0]
                     : paired          ? weights + cells_of(call.weights) + k / 2 * row
                                       : weights + call.weights + k * row;
      rows.weight_step = weights_in_place_ ? pass_.w.strides[0] : call.count;
      for (int64_t z = 0; z < size[1]; ++z)
        for (int64_t y = 0; y < (cut_.whole_planes ? 1 : size[2]); ++y) {
          const int64_t at = (z * extent[1] + y) * extent[2];
          rows.source = source + at;
          rows.out = sums + call.row * cut_.out_pitch + z * cut_.plane_pitch + y * cut_.row_pitch;
          if (paired)
            kernels::cpu::bf16_row_sums(rows);
          else if (valid == nullptr)
            kernels::cpu::row_sums(rows);
          else
            kernels::cpu::masked_row_sums(rows, valid + at,
                                          cut_.live.empty() ? nullptr : cut_.live.data() + call.live);
        }
    }
  }

  ConvPass pass_;
  NarrowCut cut_;
  Slots slots_;
  Part<float> packed_, cells_, strip_, sums_, row_, start_, bias_, valid_;
  bool weights_in_place_ = false;
  bool pairs_ = false;
  std::optional<PassTensor> cell_source_;  // where pairs lie side by side
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  Checked residues = 1, terms = source_channels(conv);
  for (const problem::Window& w : conv.axes) {
    residues = residues * (is_forward(conv) ? w.stride : std::min(w.stride, w.x));
    terms = terms * w.kernel;
  }
  // Channels side by side are read in place by dense_gather, turned over here.
  const auto& source = source_of(conv).strides;
  const bool channels_last = source[1] == 1 && source[4] != 1 && source_channels(conv) > 1;
  if (result_channels(conv) >= vectors_of(machine).floats &&
      (channels_last || terms.get().value_or(INT64_MAX) > kFewTerms))
    return "a group has channels enough to fill a vector with them";
  if (residues.get().value_or(INT64_MAX) > (is_forward(conv) ? kMostSourceResidues : kMostPhases))
    return "the strides make more than 4096 phases or 64 strips";
  if (terms.get().value_or(INT64_MAX) > kMostTerms) return "a result is a sum of more than 2^20 products";
  if ((residues * result_channels(conv)).get().value_or(INT64_MAX) > kMostResults)
    return "a group has more than 2^14 channels and residues of them";
  if (const ConvPass rows = with_rows(conv); positions_along(rows, rows.axes[2]) < kShortestRow)
    return "rows of fewer than 4 places do not fill a vector";
  return std::nullopt;
}

Effort effort(const problem::Pass& pass, const Machine& machine) {
  return few_channels_gather_effort(with_rows(std::get<ConvPass>(pass)), machine);
}
std::unique_ptr<const Step> step(const ConvPass& pass, const Machine& machine) {
  return std::make_unique<NarrowGatherStep>(with_rows(pass), machine);
}

}  // namespace

const Candidate& narrow_gather() {
  static const ConvCandidate instance({"cpu.narrow_gather", kGathers, unfit, effort, step});
  return instance;
}

}  // namespace retrograd::engines::cpu
