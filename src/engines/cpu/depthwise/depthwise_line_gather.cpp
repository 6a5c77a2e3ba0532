// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_t source[n, c, q + offset(t)] · weight[c, t]   with one channel a group and one row
//
// A task takes a chunk of the rows of some channels of some images. The source comes through a buffer that
// stays in L1, with zeros where it ends; FP32 results are written where they belong.
//
// Pixels outside a row count as zeros, which differs from leaving them out only for weights that are not
// finite: such a channel runs with masks (masked_rows.h).
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/depthwise/depthwise_axes.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/depthwise/depthwise_lines.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/depthwise/depthwise_line.h"
#include "kernels/cpu/layout/masked_rows.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

class DepthwiseLineGatherStep final : public Step {
 public:
  DepthwiseLineGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        phase_(gather_axes(pass)[2].phases.front()),
        chunks_(phase_, vectors_of(machine)),
        in_place_(is_plain(pass.result(), OperandRounding::kNone)),
        taps_(pass.axes[2].kernel) {
    const int64_t vectors = ceil_div(chunks_.most_positions(), kernels::cpu::kMostLineLanes * 2);
    cut_ = cut_into_image_blocks(pass.batch, pass.groups,
                                 {.vectors = vectors * (taps_ + 2),
                                  .floats = 2 * chunks_.most_positions(),
                                  .kept = taps_,
                                  .setup = taps_});
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    Parts& own = slots_.own;
    weights_ = own.add<float>((cut_.channels_per_task + 1) * taps_);
    source_ = own.add<float>(chunks_.source_floats());
    result_ = own.add<float>(chunks_.most_positions() + vectors_of(machine).row_overrun());
    valid_ = own.add<float>(chunks_.source_floats());
    bias_ = own.add<float>(bias_floats(pass, cut_.channels_per_task));
  }

  std::string describe() const override {
    return fmt::format("vectors along W; {} tasks of {} images x {} channels x {} places", tasks(),
                       cut_.images_per_task, cut_.channels_per_task, chunks_.most_positions());
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const int64_t blocks = cut_.channel_blocks(), chunks = chunks_.count();
    run_tasks_nearby(*context.pool, tasks(), slots_.count, [&](int64_t task, int64_t slot) {
      const ImageBlock block = cut_.task(task / chunks % blocks, task / chunks / blocks);
      run_block(bindings, block, task % chunks, slots_.at(workspace, slot));
    });
  }

 private:
  int64_t tasks() const { return cut_.channel_blocks() * cut_.image_blocks() * chunks_.count(); }

  void run_block(const Bindings& bindings, const ImageBlock& block, int64_t chunk, std::byte* memory) const {
    float *const weights = weights_.in(memory), *const source = source_.in(memory);
    float *const result = result_.in(memory), *const valid = valid_.in(memory);
    const float* bias = load_bias(pass_, bindings, block.channel, block.channels, bias_.in(memory));
    const problem::PassTensor &from = source_of(pass_), &to = pass_.result();
    const auto address = [&](const problem::PassTensor& tensor, int64_t image, int64_t channel,
                             int64_t place) {
      return static_cast<std::byte*>(bindings[tensor.operand]) +
             (image * tensor.strides[0] + channel * tensor.strides[1] + place) *
                 static_cast<int64_t>(size_of(tensor.dtype));
    };
    const problem::Range positions = chunks_.at(chunk);
    kernels::cpu::DepthwiseLine line;
    line.source = source;
    line.count = positions.size();
    line.offsets = chunks_.offsets().data();
    line.taps = taps_;
    bool finite = true;
    for (int64_t c = 0; c < block.channels; ++c)
      finite &= load_weights(bindings, block.channel + c, weights + (c + 1) * taps_, weights + c * taps_);
    if (!finite) chunks_.load_valid(chunk, valid);
    // Rows of neighbouring channels follow each other in memory.
    for (int64_t n = block.image; n < block.image + block.images; ++n)
      for (int64_t c = 0; c < block.channels; ++c) {
        chunks_.load_source(from, pass_.rounding, address(from, n, block.channel + c, 0), chunk, source);
        std::byte* const out = address(to, n, block.channel + c, positions.begin);
        line.weights = weights + c * taps_;
        if (bias != nullptr) line.start = bias[c];
        const bool masked = !finite && !all_finite(line.weights, taps_);
        line.out = in_place_ && !masked ? reinterpret_cast<float*>(out) : result;
        masked ? run_masked(line, valid) : kernels::cpu::depthwise_line(line);
        if (line.out == result) store_row(to.dtype, out, 1, result, 1, line.count);
      }
  }

  // As depthwise_line() without the places outside; writes up to a vector more.
  static void run_masked(const kernels::cpu::DepthwiseLine& line, const float* valid) {
    kernels::cpu::masked_row_sums({.source = line.source,
                                   .offsets = line.offsets,
                                   .inner = line.taps,
                                   .weights = line.weights,
                                   .weight_step = 1,
                                   .out = line.out,
                                   .count = line.count,
                                   .start = &line.start},
                                  valid, nullptr);
  }

  // Those of a channel in the order of the phase's taps; whether all are finite.
  bool load_weights(const Bindings& bindings, int64_t channel, float* raw, float* weights) const {
    load_taps(pass_, bindings, channel, 0, raw);
    for (const PhaseTap& tap : phase_.taps) *weights++ = raw[tap.tap];
    return all_finite(raw, taps_);
  }

  ConvPass pass_;
  AxisPhase phase_;
  LineChunks chunks_;
  bool in_place_;
  int64_t taps_;
  ImageCut cut_;
  Slots slots_;
  Part<float> weights_, source_, result_, valid_, bias_;
};

}  // namespace

const Candidate& depthwise_line_gather() {
  static const ConvCandidate instance({"cpu.depthwise_line_gather", kGathers, unfit_for_lines,
                                       depthwise_rows_effort, make<DepthwiseLineGatherStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu
