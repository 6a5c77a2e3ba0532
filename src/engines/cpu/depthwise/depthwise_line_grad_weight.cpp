// SPDX-License-Identifier: Apache-2.0
// w[c, t] = Σ_n Σ_p x[n, c, p + offset(t)] · y[n, c, p]   with one channel a group and one row
//
// A task takes some chunks of the rows of some channels of some images and sums a vector for each tap; x
// comes through a buffer with zeros where it ends, y is read in place where it is FP32. Tasks of the same
// channels are added in order.
//
// Pixels outside a row count as zeros, which differs from leaving them out only where what they are
// multiplied with is not finite: then a sum is not finite either, and its channel runs again with masks
// (masked_rows.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/depthwise/depthwise_lines.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/depthwise/depthwise_line.h"
#include "kernels/cpu/layout/masked_rows.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kMostRowParts = 32;
constexpr int64_t kSumCost = 4;  // of adding the lanes of a sum, in multiply-adds of a vector

class DepthwiseLineGradWeightStep final : public Step {
 public:
  DepthwiseLineGradWeightStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        chunks_(forward_phase(pass.axes[2]), vectors_of(machine)),
        y_in_place_(is_plain(pass.y, pass.rounding)),
        taps_(pass.axes[2].kernel) {
    const int64_t vectors = ceil_div(chunks_.most_positions(), kernels::cpu::kMostLineLanes * 2);
    chunks_per_task_ = ceil_div(chunks_.count(), kMostRowParts);
    cut_ = cut_into_image_blocks(pass.batch, pass.groups,
                                 {.vectors = chunks_per_task_ * vectors * (taps_ + 2),
                                  .floats = 2 * chunks_per_task_ * chunks_.most_positions(),
                                  .kept = channel_sums(),
                                  .setup = taps_ * kSumCost});
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    totals_ = slots_.shared.add<float>(parts() * cut_.channels * taps_);
    Parts& own = slots_.own;
    sums_ = own.add<float>(cut_.channels_per_task * channel_sums());
    x_ = own.add<float>(chunks_.source_floats());
    y_ = own.add<float>(y_in_place_ ? 0 : chunks_.most_positions());
    valid_ = own.add<float>(chunks_.source_floats());
    masked_ = own.add<float>(taps_ * vectors_of(machine).dot_lanes());
  }

  std::string describe() const override {
    return fmt::format("vectors along W; {} tasks of {} images x {} channels x {} chunks of {} places",
                       tasks(), cut_.images_per_task, cut_.channels_per_task, chunks_per_task_,
                       chunks_.most_positions());
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const totals = totals_.in(workspace);
    const int64_t blocks = cut_.channel_blocks();
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      std::byte* const memory = slots_.at(workspace, slot);
      const int64_t part = task / blocks;
      const ImageBlock block = cut_.task(task % blocks, part / row_parts());
      float* total = totals + (part * cut_.channels + block.channel) * taps_;
      const int64_t first = part % row_parts() * chunks_per_task_;
      sum_block(bindings, block, first, memory, total);
      for (int64_t c = 0; c < block.channels; ++c, total += taps_)
        if (!all_finite(total, taps_)) sum_masked(bindings, block, c, first, memory, total);
      if (parts() == 1) store_channels(bindings, block.channel, block.channels, totals);
    });
    if (parts() == 1) return;
    for (int64_t part = 1; part < parts(); ++part)
      for (int64_t i = 0; i < cut_.channels * taps_; ++i)
        totals[i] += totals[part * cut_.channels * taps_ + i];
    store_channels(bindings, 0, cut_.channels, totals);
  }

 private:
  // Of the sum of a channel.
  int64_t parts() const { return cut_.image_blocks() * row_parts(); }
  int64_t row_parts() const { return ceil_div(chunks_.count(), chunks_per_task_); }
  int64_t tasks() const { return cut_.channel_blocks() * parts(); }
  int64_t channel_sums() const { return taps_ * kernels::cpu::kMostLineLanes; }

  const std::byte* address(const Bindings& bindings, const problem::PassTensor& tensor, int64_t image,
                           int64_t channel, int64_t place) const {
    return static_cast<const std::byte*>(bindings[tensor.operand]) +
           (image * tensor.strides[0] + channel * tensor.strides[1] + place) *
               static_cast<int64_t>(size_of(tensor.dtype));
  }
  // A chunk of y, in place or converted.
  const float* load_y(const Bindings& bindings, int64_t image, int64_t channel,
                      const problem::Range& positions, float* y) const {
    const std::byte* const row = address(bindings, pass_.y, image, channel, positions.begin);
    if (y_in_place_) return reinterpret_cast<const float*>(row);
    load_row(pass_.y.dtype, pass_.rounding, row, 1, positions.size(), y);
    return y;
  }

  void sum_block(const Bindings& bindings, const ImageBlock& block, int64_t first_chunk, std::byte* memory,
                 float* total) const {
    float *const sums = sums_.in(memory), *const x = x_.in(memory), *const y = y_.in(memory);
    const int64_t end_chunk = std::min(first_chunk + chunks_per_task_, chunks_.count());
    const int64_t lanes = line_lanes_of(kernels::cpu::vector_shape());
    kernels::cpu::DepthwiseLineDots line;
    line.x = x;
    line.offsets = chunks_.offsets().data();
    line.taps = taps_;
    std::fill_n(sums, block.channels * channel_sums(), 0.0F);
    // Rows of neighbouring channels follow each other in memory.
    for (int64_t n = block.image; n < block.image + block.images; ++n)
      for (int64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
        const problem::Range positions = chunks_.at(chunk);
        line.count = positions.size();
        for (int64_t c = 0; c < block.channels; ++c) {
          line.sums = sums + c * channel_sums();
          if (std::isnan(line.sums[0])) continue;  // sum_masked() will do this channel
          chunks_.load_source(pass_.x, pass_.rounding, address(bindings, pass_.x, n, block.channel + c, 0),
                              chunk, x);
          line.y = load_y(bindings, n, block.channel + c, positions, y);
          kernels::cpu::depthwise_line_dots(line);
          // The first row tells of a tensor that is not finite at all: its others need not be added.
          if (n == block.image && chunk == first_chunk && !all_finite(line.sums, taps_ * lanes))
            line.sums[0] = std::numeric_limits<float>::quiet_NaN();
        }
      }
    for (int64_t c = 0; c < block.channels; ++c)
      kernels::cpu::add_line_lanes(sums + c * channel_sums(), taps_, total + c * taps_);
  }

  // Channel c of a block without the places outside.
  void sum_masked(const Bindings& bindings, const ImageBlock& block, int64_t c, int64_t first_chunk,
                  std::byte* memory, float* total) const {
    float *const x = x_.in(memory), *const y = y_.in(memory);
    float *const valid = valid_.in(memory), *const sums = masked_.in(memory);
    const int64_t end_chunk = std::min(first_chunk + chunks_per_task_, chunks_.count());
    kernels::cpu::RowDots dots;
    dots.source = x;
    dots.offsets = chunks_.offsets().data();
    dots.terms = taps_;
    dots.sums = sums;
    for (int64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
      const problem::Range positions = chunks_.at(chunk);
      dots.count = positions.size();
      chunks_.load_valid(chunk, valid);
      for (int64_t n = block.image; n < block.image + block.images; ++n) {
        chunks_.load_source(pass_.x, pass_.rounding, address(bindings, pass_.x, n, block.channel + c, 0),
                            chunk, x);
        dots.y = load_y(bindings, n, block.channel + c, positions, y);
        kernels::cpu::masked_row_dots(dots, {.valid = valid, .valid_terms = taps_});
        dots.accumulate = true;
      }
    }
    kernels::cpu::lane_totals(sums, taps_, total);
  }

  void store_channels(const Bindings& bindings, int64_t first, int64_t channels, const float* totals) const {
    for (int64_t channel = first; channel < first + channels; ++channel)
      store_taps(pass_, bindings, channel, 0, totals + channel * taps_);
  }

  ConvPass pass_;
  LineChunks chunks_;  // of y
  int64_t chunks_per_task_ = 1;
  bool y_in_place_;
  int64_t taps_;
  ImageCut cut_;
  Slots slots_;
  Part<float> totals_, sums_, x_, y_, valid_, masked_;
};

}  // namespace

const Candidate& depthwise_line_grad_weight() {
  static const ConvCandidate instance({"cpu.depthwise_line_grad_weight", kGradWeights, unfit_for_lines,
                                       depthwise_rows_effort, make<DepthwiseLineGradWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
