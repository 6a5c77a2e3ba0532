// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_t source[n, c, place(q, t)] · weight[c, t]   with one channel a group
//
// A task takes some channels of some images, packs their weights and computes their planes where they lie;
// types other than FP32 are converted some planes at a time. Rows of a result whose taps are the same, a
// phase, read every `step`th row of the source, so strides and dilations along H are pitches. Pixels outside
// a row are left out, so what is not finite needs no look.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/depthwise/depthwise_wide.h"
#include "kernels/cpu/float_at.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::DepthwiseWide;
using problem::ConvPass;

constexpr int64_t kMostTaps = 4096;

bool one_row(const ConvPass& pass) {
  const problem::Window& h = pass.axes[1];
  return h.x == 1 && h.y == 1 && h.kernel == 1;
}

class DepthwiseWideGatherStep final : public Step {
 public:
  DepthwiseWideGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        source_(source_of(pass), pass.rounding, sizes_of(pass, is_forward(pass))),
        result_(pass.result(), OperandRounding::kNone, sizes_of(pass, !is_forward(pass))),
        axes_(gather_axes(pass)) {
    list_taps();
    const int64_t width = ceil_div(axes_[2].results, static_cast<int64_t>(axes_[2].phases.size()));
    lanes_ = vectors_of(machine).wide_lanes(width);
    const int64_t vectors = axes_[0].results * axes_[1].results * ceil_div(axes_[2].results, lanes_);
    // Where several passes go over a part, it stays in L1.
    const int64_t share = row_phases_.size() > 1 || row_phases_.front().classes.size() > 1 ? 4 : 1;
    cut_ = cut_into_image_blocks(pass.batch, pass.groups,
                                 {.vectors = vectors * (terms_of(pass) + 2),
                                  .floats = (source_.plane_floats() + result_.plane_floats()) * share,
                                  .kept = packed_,
                                  .setup = packed_});
    const int64_t planes = cut_.channels_per_part;
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    Parts& own = slots_.own;
    weights_ = own.add<float>(cut_.channels_per_task * packed_);
    raw_ = own.add<float>(kernel_);
    from_ = own.add<float>(source_.in_place() ? 0 : planes * source_.plane_floats());
    to_ = own.add<float>(result_.in_place() ? 0 : planes * result_.plane_floats());
    bias_ = own.add<float>(bias_floats(pass, cut_.channels_per_task));
  }

  std::string describe() const override {
    return fmt::format("vectors of {} along W, up to 8 rows; {} tasks of {} images x {} channels", lanes_,
                       tasks(), cut_.images_per_task, cut_.channels_per_task);
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      const int64_t blocks = cut_.channel_blocks();
      run_block(bindings, cut_.task(task % blocks, task / blocks), slots_.at(workspace, slot));
    });
  }

 private:
  int64_t tasks() const { return cut_.channel_blocks() * cut_.image_blocks(); }

  // Packed weights are [phase along H][tap along D][tap along W, by phase][tap along H].
  void list_taps() {
    for (size_t i = 0; i < axes_[2].phases.size(); ++i) {
      const AxisPhase& phase = axes_[2].phases[i];
      taps_[i] = static_cast<int64_t>(phase.taps.size());
      for (const PhaseTap& tap : phase.taps) offsets_.push_back(tap.offset);
    }
    kernel_ = taps_of(pass_);
    for (const AxisPhase& phase : axes_[1].phases) {
      RowPhase& rows = row_phases_.emplace_back();
      make_row_phase(phase, rows);
      first_weights_.push_back(static_cast<int64_t>(order_.size()));
      for (const AxisPhase& pd : axes_[0].phases)
        for (const PhaseTap& td : pd.taps)
          for (const AxisPhase& pw : axes_[2].phases)
            for (const PhaseTap& tw : pw.taps)
              for (const int64_t th : rows.taps)
                order_.push_back((td.tap * pass_.axes[1].kernel + th) * pass_.axes[2].kernel + tw.tap);
    }
    int64_t first = 0;
    for (const AxisPhase& pd : axes_[0].phases) {
      first_depths_.push_back(first);
      first += static_cast<int64_t>(pd.taps.size());
    }
    packed_ = static_cast<int64_t>(order_.size());
  }

  void pack_weights(const Bindings& bindings, const ImageBlock& block, float* raw, float* packed) const {
    const auto& s = pass_.w.strides;
    // Calls for each channel of small planes would be a tenth of the time.
    const bool in_place = is_plain(pass_.w, pass_.rounding) && taps_follow_each_other(pass_);
    const auto* base = static_cast<const float*>(bindings[pass_.w.operand]);
    for (int64_t c = 0; c < block.channels; ++c, packed += packed_) {
      if (!in_place) load_taps(pass_, bindings, block.channel + c, 0, raw);
      const float* from = in_place ? base + (block.channel + c) * s[0] : raw;
      for (int64_t i = 0; i < packed_; ++i)
        packed[i] = kernels::cpu::float_at(from + order_[static_cast<size_t>(i)]);
    }
  }

  void run_block(const Bindings& bindings, const ImageBlock& block, std::byte* memory) const {
    float *const weights = weights_.in(memory), *const source = from_.in(memory),
                 *const result = to_.in(memory);
    const float* bias = load_bias(pass_, bindings, block.channel, block.channels, bias_.in(memory));
    pack_weights(bindings, block, raw_.in(memory), weights);
    void* const from = bindings[source_of(pass_).operand];
    void* const to = bindings[pass_.result().operand];
    for (int64_t n = 0; n < block.images; ++n)
      for (int64_t c = 0; c < block.channels; c += cut_.channels_per_part) {
        const ImageBlock part{block.image + n, 1, block.channel + c,
                              std::min(cut_.channels_per_part, block.channels - c)};
        source_.load(from, part, source);
        run_part(part, source_.view(from, part, source), weights + c * packed_,
                 bias != nullptr ? bias + c : nullptr, result_.view(to, part, result));
        result_.store(to, part, result);
      }
  }

  void run_part(const ImageBlock& part, const PlaneView& source, const float* weights, const float* bias,
                const PlaneView& result) const {
    DepthwiseWide wide;
    wide.lanes = lanes_;
    wide.planes = part.channels;
    wide.source_plane = source.strides[1];
    wide.weight_plane = packed_;
    wide.start = bias;
    wide.out_plane = result.strides[1];
    wide.width = axes_[2].results;
    wide.source_width = axes_[2].phases.front().source_size;
    wide.offsets = offsets_.data();
    wide.taps[0] = taps_[0];
    wide.taps[1] = taps_[1];
    wide.phases = static_cast<int>(axes_[2].phases.size());
    for (int64_t d = 0; d < axes_[0].results; ++d) {
      const size_t phase = static_cast<size_t>(d % axes_[0].step());
      const AxisPhase& pd = axes_[0].phases[phase];
      const int64_t place = d / pd.step * pd.source_step, count = static_cast<int64_t>(pd.taps.size());
      const auto live = [&](int64_t t) {
        const int64_t at = place + pd.taps[static_cast<size_t>(t)].offset;
        return at >= 0 && at < pd.source_size;
      };
      int64_t first = 0, end = count;
      while (first < end && !live(first)) ++first;
      while (first < end && !live(end - 1)) --end;
      wide.depths = end - first;
      const int64_t at = first < end ? place + pd.taps[static_cast<size_t>(first)].offset : 0;
      wide.source_depth =
          count > 1 ? (pd.taps[1].offset - pd.taps[0].offset) * source.strides[2] : source.strides[2];
      for (size_t i = 0; i < row_phases_.size(); ++i) {
        const int64_t taps = static_cast<int64_t>(offsets_.size() * row_phases_[i].taps.size());
        wide.weight_depth = taps;
        wide.weights = weights + first_weights_[i] + (first_depths_[phase] + first) * taps;
        run_rows(row_phases_[i], source.at + at * source.strides[2], source,
                 result.at + d * result.strides[2], result, wide);
      }
    }
  }

  void run_rows(const RowPhase& rows, const float* source, const PlaneView& from, float* out,
                const PlaneView& to, DepthwiseWide wide) const {
    wide.tap_rows = std::max<int64_t>(static_cast<int64_t>(rows.taps.size()), 1);
    if (rows.taps.empty()) wide.depths = 0;
    wide.source_row = rows.step * from.strides[3];
    wide.out_row = rows.step * rows.result_step * to.strides[3];
    for (const RowClass& c : rows.classes) {
      wide.rows = c.positions;
      wide.first_row = c.first;
      wide.source_rows = c.source_rows;
      wide.source = source + c.source * from.strides[3];
      wide.out = out + (rows.first + c.position * rows.result_step) * to.strides[3];
      kernels::cpu::depthwise_wide(wide);
    }
  }

  ConvPass pass_;
  BlockTensor source_, result_;
  std::array<GatherAxis, 3> axes_;
  std::vector<RowPhase> row_phases_;
  std::vector<int64_t> offsets_;        // along W, of all phases
  std::array<int64_t, 2> taps_{};       // of each phase along W
  std::vector<int64_t> order_;          // of the packed weights, as taps of the tensor
  std::vector<int64_t> first_weights_;  // of each phase along H
  std::vector<int64_t> first_depths_;   // the first tap of each phase along D
  ImageCut cut_;
  int64_t lanes_ = 0, kernel_ = 0, packed_ = 0;
  Slots slots_;
  Part<float> weights_, raw_, from_, to_, bias_;
};

std::optional<Reason> unfit_window(const ConvPass& conv, const VectorShape& vectors) {
  const auto& [kd, kh, kw] = conv.axes;
  if (taps_of(conv) > kMostTaps) return "the kernel has more than 2^12 taps";
  if (kw.kernel > kernels::cpu::kMostWideTaps) return "the kernel is wider than 64";
  if (is_forward(conv) ? kw.stride * kh.stride > 1 : kw.stride > 2)
    return "the strides leave gaps in the rows";
  if (one_row(conv)) return "there is one row";
  const auto axes = gather_axes(conv);
  const int64_t width = ceil_div(axes[2].results, static_cast<int64_t>(axes[2].phases.size()));
  const int64_t lanes = vectors.wide_lanes(width);
  if (lanes == 0) return "there are no masked loads";
  if (width * 2 <= lanes) return "rows are shorter than half a vector";
  RowPhase rows;
  for (const AxisPhase& phase : axes[1].phases) {
    const int64_t most =
        axes[2].phases.size() == 1 ? kernels::cpu::kMostWideTapRows : kernels::cpu::kMostWideTapRowsOfTwo;
    if (static_cast<int64_t>(phase.taps.size()) > most)
      return fmt::format("more than {} rows of taps reach a row", most);
    if (!make_row_phase(phase, rows)) return "taps are not the same distance apart";
  }
  return std::nullopt;
}

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  if (auto reason = unfit_for_planes(conv)) return reason;
  if (auto reason = unfit_phases(conv)) return reason;
  return unfit_window(conv, vectors_of(machine));
}

}  // namespace

const Candidate& depthwise_wide_gather() {
  static const ConvCandidate instance(
      {"cpu.depthwise_wide_gather", kGathers, unfit, depthwise_rows_effort, make<DepthwiseWideGatherStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
