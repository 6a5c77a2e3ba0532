// SPDX-License-Identifier: Apache-2.0
// Taps at the ends of a kernel that never meet x, as where the kernel is longer than the image: what is left
// is a pass with a shorter kernel, which the cheapest implementation for it computes on the same operands. In
// grad_weight the taps that are left out get zeros.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cost.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/strided_copy.h"
#include "engines/registry.h"
#include "engines/short_kernel.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kTaskElements = 1 << 14;  // of a clearing

// Every element of the weight, as it lies.
StridedCopy weight_of(const ConvPass& p) {
  const auto& s = p.w.strides;
  return StridedCopy(as_they_lie({{p.y_channels, 0, s[0]},
                                  {p.x_channels_per_group(), 0, s[1]},
                                  {p.axes[0].kernel, 0, s[2]},
                                  {p.axes[1].kernel, 0, s[3]},
                                  {p.axes[2].kernel, 0, s[4]}}),
                     size_of(p.w.dtype));
}

class LiveTapsStep final : public Step {
 public:
  LiveTapsStep(const ConvPass& pass, const Machine& machine)
      : w_(pass.w),
        clears_(pass.kind == ConvPassKind::kGradWeight),
        shorter_(shorten(pass)),
        weight_(weight_of(pass)),
        inner_(cheapest(candidates(runtime::DeviceKind::kCpu), shorter_.pass, machine).candidate),
        step_(inner_->make_step(shorter_.pass, machine)) {}

  size_t workspace_bytes() const override { return step_->workspace_bytes(); }
  std::string describe() const override {
    const auto& axes = shorter_.pass.axes;
    return fmt::format("kernel {}x{}x{}; {}: {}", axes[0].kernel, axes[1].kernel, axes[2].kernel,
                       inner_->name(), step_->describe());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* const w = static_cast<std::byte*>(bindings[w_.operand]);
    if (clears_)
      context.pool->parallel_for(weight_.rows(), std::max<int64_t>(1, kTaskElements / weight_.row_elements()),
                                 [&](int64_t begin, int64_t end) { weight_.clear(w, begin, end); });
    Bindings inner = bindings;
    inner.set(w_.operand, w + shorter_.offset * static_cast<int64_t>(size_of(w_.dtype)));
    step_->run(inner, workspace, context);
  }

 private:
  PassTensor w_;
  bool clears_;
  ShortKernel shorter_;
  StridedCopy weight_;
  const Candidate* inner_;
  std::unique_ptr<const Step> step_;
};

class LiveTapsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.live_taps"; }

  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    if (const Support ends = has_dead_ends(pass); !ends.accepted()) return ends;
    const auto& p = std::get<ConvPass>(pass);
    if (const auto reason = unfit_weight(p)) return Support::no(*reason);
    if (const auto reason = unfit_size(shorten(p).pass)) return Support::no(*reason);
    return Support::yes();
  }

  Effort effort(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto& p = std::get<ConvPass>(pass);
    // The taps that are left are a part of the weight: its elements are packed one by one unless channels lie
    // side by side. The stride of a single channel says nothing.
    const double slowness = p.w.strides[1] == 1 && p.x_channels_per_group() > 1 ? 0.1 : 1;
    const ConvPass left = shorten(p).pass;
    double packed =
        slowness * static_cast<double>(p.y_channels) * static_cast<double>(p.x_channels_per_group());
    double places = 1;  // of a pair of channels in the weight
    for (size_t i = 0; i < 3; ++i) {
      packed *= static_cast<double>(left.axes[i].kernel);
      places *= static_cast<double>(p.axes[i].kernel);
    }
    if (p.kind == ConvPassKind::kForward && slowness == 1) {
      // Of every pair of channels a line of memory is read, or two.
      constexpr double kNear = 2, kFar = 8, kFarBytes = 1 << 23;
      const double pairs = static_cast<double>(p.y_channels) * static_cast<double>(p.x_channels_per_group());
      packed += pairs * (pairs * places * static_cast<double>(size_of(p.w.dtype)) < kFarBytes ? kNear : kFar);
    }
    if (p.kind != ConvPassKind::kGradWeight)
      return {.operations = 0, .bytes = 0, .launches = 0, .calls = packed};
    const StridedCopy weight = weight_of(p);
    return {.operations = 0,
            .bytes = static_cast<double>(weight.rows()) * static_cast<double>(weight.row_elements()) *
                     static_cast<double>(size_of(p.w.dtype)),
            .launches = 1,
            .calls = packed};
  }
  std::optional<Rest> rest(const problem::Pass& pass, const Machine& machine) const override {
    const problem::Pass left = shorten(std::get<ConvPass>(pass)).pass;
    return Rest{cheapest(candidates(runtime::DeviceKind::kCpu), left, machine).candidate, left};
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return std::make_unique<LiveTapsStep>(std::get<ConvPass>(pass), machine);
  }
};

}  // namespace

const Candidate& live_taps() {
  static const LiveTapsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
