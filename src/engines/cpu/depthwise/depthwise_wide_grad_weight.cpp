// SPDX-License-Identifier: Apache-2.0
// w[c, t] = Σ_n Σ_p x[n, c, p·stride + offset(t)] · y[n, c, p]   with one channel a group
//
// A task takes some channels of some images and sums a vector for each channel and tap over all their rows,
// where they lie; types other than FP32 are converted some planes at a time. Strides along H are residues of
// rows, dilations classes of them.
//
// Pixels outside a row count as zeros, which differs from leaving them out only where what they are
// multiplied with is not finite: then a sum is not finite either, and its task runs again with masks.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/depthwise/depthwise_wide_dots.h"
#include "kernels/cpu/float_at.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::DepthwiseWideDots;
using problem::ConvPass;
using problem::Window;

constexpr int64_t kMostTaps = 1024;
constexpr int64_t kSumCost = 4;  // of adding the lanes of a sum, in multiply-adds of a vector

// The taps of one residue of the stride, as a phase over the places of x with that residue.
AxisPhase residue_phase(const Window& w, int64_t residue) {
  AxisPhase phase{.count = w.y,
                  .first = 0,
                  .step = 1,
                  .source_size = ceil_div(std::max<int64_t>(w.x - residue, 0), w.stride),
                  .source_step = 1,
                  .taps = {}};
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    const int64_t at = tap * w.dilation - w.pad_lo;
    if (at - floor_div(at, w.stride) * w.stride != residue) continue;
    phase.taps.push_back({tap, floor_div(at, w.stride)});
  }
  return phase;
}

int64_t round_up(int64_t count, int64_t unit) { return ceil_div(count, unit) * unit; }

class DepthwiseWideGradWeightStep final : public Step {
 public:
  DepthwiseWideGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        x_(pass.x, pass.rounding, sizes_of(pass, true)),
        y_(pass.y, pass.rounding, sizes_of(pass, false)),
        lanes_(vectors_of(machine).wide_lanes(pass.axes[2].y)),
        taps_(taps_of(pass)) {
    list_taps();
    int64_t tap_rows = 0;
    for (const RowPhase& rows : row_phases_)
      tap_rows = std::max(tap_rows, static_cast<int64_t>(rows.taps.size()));
    pair_ = vectors_of(machine).wide_planes(lanes_, tap_rows);
    sum_floats_ = taps_ * pair_ * lanes_;
    const auto& [wd, wh, ww] = pass_.axes;
    const int64_t vectors = wd.y * wh.y * ceil_div(ww.y, lanes_);
    // Where several passes go over a part, it stays in L1.
    const int64_t share = row_phases_.size() > 1 || row_phases_.front().classes.size() > 1 ? 4 : 1;
    cut_ = cut_into_image_blocks(pass.batch, pass.groups,
                                 {.vectors = vectors * (taps_ + 2),
                                  .floats = (x_.plane_floats() + y_.plane_floats()) * share,
                                  .kept = taps_ * lanes_,
                                  .setup = taps_ * kSumCost});
    cut_.channels_per_part = std::min(round_up(cut_.channels_per_part, pair_), cut_.channels_per_task);
    const int64_t planes = cut_.channels_per_part;
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    totals_ = slots_.shared.add<float>(cut_.image_blocks() * cut_.channels * taps_);
    sums_ = slots_.own.add<float>(ceil_div(cut_.channels_per_task, pair_) * sum_floats_);
    x_buffer_ = slots_.own.add<float>(x_.in_place() ? 0 : planes * x_.plane_floats());
    y_buffer_ = slots_.own.add<float>(y_.in_place() ? 0 : planes * y_.plane_floats());
    row_ = slots_.own.add<float>(taps_);
  }

  std::string describe() const override {
    return fmt::format("vectors of {} along W, up to 8 rows; {} tasks of {} images x {} channels", lanes_,
                       tasks(), cut_.images_per_task, cut_.channels_per_task);
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const totals = totals_.in(workspace);
    const int64_t blocks = cut_.channel_blocks();
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      const ImageBlock block = cut_.task(task % blocks, task / blocks);
      std::byte* const memory = slots_.at(workspace, slot);
      float* total = totals + (task / blocks * cut_.channels + block.channel) * taps_;
      if (!sum_block(bindings, block, false, memory, total)) sum_block(bindings, block, true, memory, total);
      if (cut_.image_blocks() == 1)
        store_channels(bindings, block.channel, block.channels, totals, row_.in(memory));
    });
    if (cut_.image_blocks() > 1)
      store_channels(bindings, 0, cut_.channels, totals, row_.in(slots_.at(workspace, 0)));
  }

 private:
  int64_t tasks() const { return cut_.channel_blocks() * cut_.image_blocks(); }

  // Sums of a plane, or pair of planes, are [residue along H][tap along D][tap along W][tap along H].
  void list_taps() {
    const auto& [wd, wh, ww] = pass_.axes;
    for (int64_t tap = 0; tap < ww.kernel; ++tap) offsets_.push_back(tap * ww.dilation - ww.pad_lo);
    for (int64_t residue = 0; residue < wh.stride; ++residue) {
      RowPhase rows;
      make_row_phase(residue_phase(wh, residue), rows);
      if (rows.taps.empty()) continue;
      first_sums_.push_back(static_cast<int64_t>(order_.size()));
      for (int64_t d = 0; d < wd.kernel; ++d)
        for (int64_t column = 0; column < ww.kernel; ++column)
          for (const int64_t row : rows.taps) order_.push_back((d * wh.kernel + row) * ww.kernel + column);
      residues_.push_back(residue);
      row_phases_.push_back(std::move(rows));
    }
  }

  // Whether all sums are finite, or masked.
  bool sum_block(const Bindings& bindings, const ImageBlock& block, bool masked, std::byte* memory,
                 float* total) const {
    float *const sums = sums_.in(memory), *const x = x_buffer_.in(memory), *const y = y_buffer_.in(memory);
    void *const x_address = bindings[pass_.x.operand], *const y_address = bindings[pass_.y.operand];
    std::fill_n(sums, ceil_div(block.channels, pair_) * sum_floats_, 0.0F);
    for (int64_t n = 0; n < block.images; ++n)
      for (int64_t c = 0; c < block.channels; c += cut_.channels_per_part) {
        const ImageBlock part{block.image + n, 1, block.channel + c,
                              std::min(cut_.channels_per_part, block.channels - c)};
        x_.load(x_address, part, x);
        y_.load(y_address, part, y);
        sum_part(part, x_.view(x_address, part, x), y_.view(y_address, part, y), masked,
                 sums + c / pair_ * sum_floats_);
        // The first part tells of a tensor that is not finite at all.
        if (!masked && n + c == 0 && !all_finite(sums, ceil_div(part.channels, pair_) * sum_floats_))
          return false;
      }
    kernels::cpu::add_wide_lanes(sums, lanes_, pair_ > 1, block.channels, taps_, total);
    return masked || all_finite(total, block.channels * taps_);
  }

  void sum_part(const ImageBlock& part, const PlaneView& x, const PlaneView& y, bool masked,
                float* sums) const {
    const auto& [wd, wh, ww] = pass_.axes;
    DepthwiseWideDots dots;
    dots.lanes = lanes_;
    dots.planes = part.channels;
    dots.x_plane = x.strides[1];
    dots.y_plane = y.strides[1];
    dots.sum_plane = sum_floats_;
    dots.pairs = pair_ > 1;
    const int64_t sum_lanes = pair_ * lanes_;
    dots.x_depth = wd.dilation * x.strides[2];
    dots.width = ww.y;
    dots.x_width = ww.x;
    dots.offsets = offsets_.data();
    dots.taps = ww.kernel;
    dots.masked = masked;
    for (int64_t d = 0; d < wd.y; ++d) {
      const problem::Range live = live_taps(wd, d);
      if (live.size() == 0) continue;
      dots.depths = live.size();
      for (size_t i = 0; i < row_phases_.size(); ++i) {
        const RowPhase& rows = row_phases_[i];
        dots.tap_rows = static_cast<int64_t>(rows.taps.size());
        dots.sum_depth = dots.taps * dots.tap_rows * sum_lanes;
        dots.sums = sums + first_sums_[i] * sum_lanes + live.begin * dots.sum_depth;
        dots.x_row = wh.stride * rows.step * x.strides[3];
        dots.y_row = rows.step * y.strides[3];
        for (const RowClass& c : rows.classes) {
          dots.rows = c.positions;
          dots.first_row = c.first;
          dots.x_rows = c.source_rows;
          dots.x = x.at + position(wd, d, live.begin) * x.strides[2] +
                   (residues_[i] + c.source * wh.stride) * x.strides[3];
          dots.y = y.at + d * y.strides[2] + c.position * y.strides[3];
          kernels::cpu::depthwise_wide_dots(dots);
        }
      }
    }
  }

  // Adds the blocks of images in order; `row` holds the taps of a channel.
  void store_channels(const Bindings& bindings, int64_t first, int64_t channels, const float* totals,
                      float* row) const {
    const auto& s = pass_.w.strides;
    const bool in_place = pass_.w.dtype == DType::kF32 && taps_follow_each_other(pass_);
    for (int64_t channel = first; channel < first + channels; ++channel) {
      if (in_place) row = static_cast<float*>(bindings[pass_.w.operand]) + channel * s[0];
      for (int64_t i = 0; i < taps_; ++i) {
        float total = totals[channel * taps_ + i];
        for (int64_t b = 1; b < cut_.image_blocks(); ++b)
          total += totals[(b * cut_.channels + channel) * taps_ + i];
        kernels::cpu::put_float(total, row + order_[static_cast<size_t>(i)]);
      }
      if (!in_place) store_taps(pass_, bindings, channel, 0, row);
    }
  }

  ConvPass pass_;
  BlockTensor x_, y_;
  int64_t lanes_, taps_;
  int64_t pair_ = 1, sum_floats_ = 0;  // planes that share sums, and their size
  std::vector<int64_t> offsets_;       // along W
  std::vector<int64_t> residues_;      // along H, those that have taps
  std::vector<RowPhase> row_phases_;   // of each
  std::vector<int64_t> first_sums_;    // of each
  std::vector<int64_t> order_;         // of the sums, as taps of the tensor
  ImageCut cut_;
  Slots slots_;
  Part<float> totals_, sums_, x_buffer_, y_buffer_, row_;
};

std::optional<Reason> unfit_window(const ConvPass& conv, const VectorShape& vectors) {
  const auto& [wd, wh, ww] = conv.axes;
  if (taps_of(conv) > kMostTaps) return "the kernel has more than 2^10 taps";
  if (ww.kernel > kernels::cpu::kMostWideTaps) return "the kernel is wider than 64";
  if (ww.stride > 1) return "the stride leaves gaps in the rows";
  if (wh.stride > wh.kernel * 8) return "the stride leaves most rows out";
  if (wh.y == 1) return "there is one row";
  const int64_t lanes = vectors.wide_lanes(ww.y);
  if (lanes == 0) return "there are no masked loads";
  if (ww.y * 2 <= lanes) return "rows are shorter than half a vector";
  RowPhase rows;
  for (int64_t residue = 0; residue < wh.stride; ++residue) {
    const AxisPhase phase = residue_phase(wh, residue);
    if (static_cast<int64_t>(phase.taps.size()) > kernels::cpu::kMostWideTapRows)
      return "more than 7 rows of taps reach a row";
    if (!make_row_phase(phase, rows)) return "taps are not the same distance apart";
  }
  return std::nullopt;
}

std::optional<Reason> unfit(const ConvPass& conv, const Machine& machine) {
  if (auto reason = unfit_for_planes(conv)) return reason;
  return unfit_window(conv, vectors_of(machine));
}

}  // namespace

const Candidate& depthwise_wide_grad_weight() {
  static const ConvCandidate instance({"cpu.depthwise_wide_grad_weight", kGradWeights, unfit,
                                       depthwise_rows_effort, make<DepthwiseWideGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
