// SPDX-License-Identifier: Apache-2.0
// result[n, c, q] = Σ_t source[n, c, q + offset(t)] · weight[c, t]   with one channel a group and one row
//
// A task takes a chunk of the rows of some channels of some images. The source comes through a buffer that
// stays in L1, with zeros where it ends; FP32 results are written where they belong.
//
// Places outside a row count as zeros, which differs from leaving them out only for weights that are not
// finite: such a pass is left to the reference.
#include "engines/cpu/depthwise_line_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/checked.h"
#include "engines/cpu/depthwise_axes.h"
#include "engines/cpu/depthwise_blocks.h"
#include "engines/cpu/depthwise_lines.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/task_slots.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/depthwise_line.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

class DepthwiseLineGatherStep final : public Step {
 public:
  explicit DepthwiseLineGatherStep(const ConvPass& pass)
      : pass_(pass),
        slots_(runtime::ThreadPool::instance().threads()),
        phase_(gather_axes(pass)[2].phases.front()),
        chunks_(phase_),
        in_place_(is_plain(pass.result(), OperandRounding::kNone)),
        taps_(pass.axes[2].kernel),
        reference_(reference::candidate().make_step(pass)) {
    const int64_t vectors = ceil_div(chunks_.most_positions(), kernels::cpu::kMostLineLanes * 2);
    cut_ = cut_into_image_blocks(pass.batch, pass.groups, vectors * (taps_ + 2), 1);
    weight_bytes_ = part_bytes<float>((cut_.channels_per_task + 1) * taps_);
    source_bytes_ = part_bytes<float>(chunks_.source_floats());
    slot_bytes_ =
        weight_bytes_ + source_bytes_ + (in_place_ ? 0 : part_bytes<float>(chunks_.most_positions()));
  }

  std::string describe() const override {
    return fmt::format("vectors along W; {} tasks of {} images x {} channels x {} places", tasks(),
                       cut_.images_per_task, cut_.channels_per_task, chunks_.most_positions());
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(std::min(slots_, tasks())) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    std::atomic<bool> finite{true};
    const int64_t blocks = cut_.channel_blocks(), chunks = chunks_.count();
    run_tasks_nearby(*context.pool, tasks(), slots_, [&](int64_t task, int64_t slot) {
      std::byte* memory = workspace + static_cast<size_t>(slot) * slot_bytes_;
      const ImageBlock block = cut_.task(task / chunks % blocks, task / chunks / blocks);
      if (!run_block(bindings, block, task % chunks, memory)) finite.store(false, std::memory_order_relaxed);
    });
    if (!finite && phase_.leaves_source()) reference_->run(bindings, workspace, context);
  }

 private:
  int64_t tasks() const { return cut_.channel_blocks() * cut_.image_blocks() * chunks_.count(); }

  bool run_block(const Bindings& bindings, const ImageBlock& block, int64_t chunk, std::byte* memory) const {
    auto* weights = reinterpret_cast<float*>(memory);
    auto* source = reinterpret_cast<float*>(memory + weight_bytes_);
    auto* result = reinterpret_cast<float*>(memory + weight_bytes_ + source_bytes_);
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
    for (int64_t c = 0; c < block.channels; ++c)
      if (!load_weights(bindings, block.channel + c, weights + (c + 1) * taps_, weights + c * taps_))
        return false;
    // Rows of neighbouring channels follow each other in memory.
    for (int64_t n = block.image; n < block.image + block.images; ++n)
      for (int64_t c = 0; c < block.channels; ++c) {
        chunks_.load_source(from, pass_.rounding, address(from, n, block.channel + c, 0), chunk, source);
        std::byte* const out = address(to, n, block.channel + c, positions.begin);
        line.weights = weights + c * taps_;
        line.out = in_place_ ? reinterpret_cast<float*>(out) : result;
        kernels::cpu::depthwise_line(line);
        if (!in_place_) store_row(to.dtype, out, 1, result, 1, line.count);
      }
    return true;
  }

  // Those of a channel in the order of the phase's taps.
  bool load_weights(const Bindings& bindings, int64_t channel, float* raw, float* weights) const {
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    load_row(pass_.w.dtype, pass_.rounding,
             static_cast<const std::byte*>(bindings[pass_.w.operand]) + channel * pass_.w.strides[0] * bytes,
             pass_.w.strides[4], taps_, raw);
    for (const PhaseTap& tap : phase_.taps) *weights++ = raw[tap.tap];
    return all_finite(raw, taps_);
  }

  ConvPass pass_;
  int64_t slots_;
  AxisPhase phase_;
  LineChunks chunks_;
  bool in_place_;
  int64_t taps_;
  std::unique_ptr<const Step> reference_;
  ImageCut cut_;
  size_t weight_bytes_ = 0, source_bytes_ = 0, slot_bytes_ = 0;
};

class DepthwiseLineGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.depthwise_line_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == problem::ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = unfit_for_lines(*conv)) return Support::no(*reason);
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DepthwiseLineGatherStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& depthwise_line_gather() {
  static const DepthwiseLineGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
