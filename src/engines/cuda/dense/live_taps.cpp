// SPDX-License-Identifier: Apache-2.0
// Kernels whose first or last taps never meet x (engines/short_kernel.h): the cheapest implementation
// computes what is left on the same operands. In grad_weight the taps that are left out get zeros.
#include <fmt/format.h>

#include "engines/cost.h"
#include "engines/cuda/candidate.h"
#include "engines/short_kernel.h"
#include "kernels/cuda/layout/scratch.h"

namespace retrograd::engines::cuda {
namespace {

// direct takes every pass.
const Candidate* cheapest_for(const ConvPass& left, const Machine& machine) {
  return cheapest(candidates(), left, machine, {&live_taps(), &dense_copies()}).candidate;
}

size_t cleared_bytes(const ConvPass& pass) {
  return is_grad_weight(pass) ? static_cast<size_t>(bytes_of(pass.w, w_sizes(pass))) : 0;
}

class LiveTapsStep final : public Step {
 public:
  LiveTapsStep(const ConvPass& pass, const Machine& machine)
      : weight_(pass.w.operand),
        cleared_(cleared_bytes(pass)),
        left_(shorten(pass)),
        inner_(cheapest_for(left_.pass, machine)),
        step_(inner_->make_step(left_.pass, machine)) {}
  // Of x and y, whose addresses stay.
  Conversions conversions() const override { return step_->conversions(); }
  size_t workspace_bytes() const override { return step_->workspace_bytes(); }
  std::string describe() const override {
    const auto& axes = left_.pass.axes;
    return fmt::format("kernel {}x{}x{}; {}: {}", axes[0].kernel, axes[1].kernel, axes[2].kernel,
                       inner_->name(), step_->describe());
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* const weight = static_cast<std::byte*>(bindings[weight_]);
    if (cleared_ != 0) kernels::cuda::clear_bytes(weight, cleared_, stream_of(context));
    Bindings inner = bindings;
    inner.set(weight_, weight + left_.offset * static_cast<int64_t>(size_of(left_.pass.w.dtype)));
    step_->run(inner, workspace, context);
  }

 private:
  problem::Operand weight_;
  size_t cleared_;  // of the weight
  ShortKernel left_;
  const Candidate* inner_;
  std::unique_ptr<const Step> step_;
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support ends = has_dead_ends(conv); !ends.accepted()) return ends;
  const Sizes5 sizes = w_sizes(conv);
  if (is_grad_weight(conv) && !is_planes(conv.w, sizes) && !is_channels_last(conv.w, sizes))
    return Support::no("needs dense weights to clear");
  return Support::yes();
}

Effort effort(const ConvPass& pass, const Machine& machine) {
  Times times(pass, machine);
  const auto cleared = static_cast<double>(cleared_bytes(pass));
  if (cleared != 0) times.add(0, 1, cleared);
  return times.effort();
}

std::optional<Rest> rest(const ConvPass& pass, const Machine& machine) {
  const ConvPass left = shorten(pass).pass;
  return Rest{cheapest_for(left, machine), left};
}

}  // namespace

const Candidate& live_taps() {
  static const ConvCandidate instance(
      {"cuda.live_taps", "computes convolutions only", supports, effort, make_step<LiveTapsStep>, rest});
  return instance;
}

}  // namespace retrograd::engines::cuda
