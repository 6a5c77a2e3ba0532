// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on NHWC tensors, up to 7x7. forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::LastPass;
using kernels::cuda::LastPlan;
using problem::ConvPass;
using problem::ConvPassKind;

LastPlan plan_of(const ConvPass& pass, const Machine& machine) {
  const LastPass kind = pass.kind == ConvPassKind::kForward     ? LastPass::kForward
                        : pass.kind == ConvPassKind::kGradInput ? LastPass::kGradInput
                                                                : LastPass::kGradWeight;
  return kernels::cuda::last_plan(shape_of(pass), kind, machine.gpu.shared_bytes);
}

// Results that tiles of so many make, those beyond the edge and of short residues too, of one that is wanted.
double made_of(const kernels::cuda::LastAxis& axis, int tile) {
  return static_cast<double>(int64_t{axis.residues} * ceil_div(axis.count, tile) * tile) /
         std::max(axis.result, 1);
}

class LastStep final : public Step {
 public:
  LastStep(const ConvPass& pass, const Machine& machine) : pass_(pass), plan_(plan_of(pass, machine)) {}
  size_t workspace_bytes() const override {
    if (!is_weight()) return 0;
    return static_cast<size_t>(plan_.blocks * pass_.groups * plan_.h.kernel * plan_.w.kernel) * sizeof(float);
  }
  std::string describe() const override {
    const std::string threads =
        fmt::format("{} x {} x {} threads along channels, columns and images, {} rows at a time", plan_.lanes,
                    plan_.strips, plan_.group, plan_.steps * plan_.tile.rows);
    return is_weight() ? fmt::format("{}, {} parts", threads, plan_.blocks) : threads;
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(pass_, bindings);
    const auto stream = stream_of(context);
    if (is_weight())
      return kernels::cuda::depthwise_last_grad_weight(conv, plan_, reinterpret_cast<float*>(workspace),
                                                       stream);
    kernels::cuda::depthwise_last_gather(conv, pass_.kind == ConvPassKind::kForward, plan_, stream);
  }

 private:
  bool is_weight() const { return pass_.kind == ConvPassKind::kGradWeight; }
  ConvPass pass_;
  LastPlan plan_;
};

// Positions fit 32 bits, those a few tiles beyond the end, too.
bool fits(const problem::Window& w, int64_t images) {
  constexpr int64_t kLargest = 1 << 28, kLargestDilation = 1 << 20;
  return std::max(w.x, w.y) * images <= kLargest && std::abs(w.pad_lo) <= kLargest &&
         (w.kernel == 1 || w.dilation <= kLargestDilation);
}

constexpr int64_t kMostChannels = 1 << 20;  // blocks side by side are counted in 16 bits

Support supports(const ConvPass& conv, const Machine& machine) {
  if (const Support depthwise = is_depthwise(conv); !depthwise.accepted()) return depthwise;
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  if (conv.groups > kMostChannels) return Support::no("needs at most 2^20 channels");
  if (!is_channels_last(conv.x, x_sizes(conv)) || !is_channels_last(conv.y, y_sizes(conv)))
    return Support::no("needs channels-last x and y");
  if (!kernels::cuda::has_last_form(shape_of(conv)))
    return Support::no("needs up to 7x7 taps in two axes, stride 1, or 2 without dilation");
  // Lines of all images may be rows of one.
  if (!fits(conv.axes[1], conv.batch * conv.axes[0].x) || !fits(conv.axes[2], 1))
    return Support::no("sizes, padding or dilation are too large");
  if (const LastPlan plan = plan_of(conv, machine); plan.shared > machine.gpu.shared_bytes)
    return Support::no("needs {} bytes of shared memory, a block has {}", plan.shared,
                       machine.gpu.shared_bytes);
  return Support::yes();
}

// Taps that the kernel does not have cost as much as others.
Effort effort(const ConvPass& conv, const Machine& machine) {
  const LastPlan plan = plan_of(conv, machine);
  Effort effort = on_fp32_units(effort_of(conv), conv, machine);
  effort.operations *= static_cast<double>(plan.tile.taps * plan.tile.taps) /
                       (plan.h.kernel * plan.w.kernel) * made_of(plan.h, plan.tile.rows) *
                       made_of(plan.w, plan.tile.columns);
  // Rows that begin at odd elements come one by one, which takes twice as long.
  if (conv.x_channels * static_cast<int64_t>(size_of(conv.x.dtype)) % 8 != 0)
    effort.operations *= 2, effort.bytes *= 2;
  effort.launches = conv.kind == ConvPassKind::kGradWeight ? 2 : 1;
  return effort;
}

}  // namespace

const Candidate& depthwise_last() {
  static const ConvCandidate instance(
      {"cuda.depthwise_last", "convolutions only", supports, effort, make_step<LastStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
