// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on NHWC tensors, up to 7x7. forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::LastPass;
using kernels::cuda::LastPlan;

LastPlan plan_of(const ConvPass& pass, const Machine& machine) {
  const LastPass kind = is_forward(pass)       ? LastPass::kForward
                        : is_grad_weight(pass) ? LastPass::kGradWeight
                                               : LastPass::kGradInput;
  return kernels::cuda::last_plan(shape_of(pass), kind, machine.gpu.shared_bytes);
}

// Results that tiles of so many make, those beyond the edge and of short residues too, of one that is wanted.
double made_of(const kernels::cuda::LastAxis& axis, int tile) {
  return static_cast<double>(int64_t{axis.residues} * ceil_div(axis.count, tile) * tile) /
         std::max(axis.result, 1);
}

struct Last {
  using Plan = LastPlan;
  static Plan plan(const ConvPass& pass, const Machine& machine) { return plan_of(pass, machine); }
  static int64_t sums(const ConvPass& pass, const Plan& plan) {
    return is_grad_weight(pass) ? plan.blocks * pass.groups * plan.h.kernel * plan.w.kernel : 0;
  }
  static std::string describe(const ConvPass& pass, const Plan& plan) {
    const std::string threads =
        fmt::format("{} x {} x {} threads along channels, columns and images, {} rows at a time", plan.lanes,
                    plan.strips, plan.group, plan.steps * plan.tile.rows);
    return is_grad_weight(pass) ? fmt::format("{}, {} parts", threads, plan.blocks) : threads;
  }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    is_grad_weight(pass) ? kernels::cuda::depthwise_last_grad_weight(conv, plan, sums, stream)
                         : kernels::cuda::depthwise_last_gather(conv, is_forward(pass), plan, stream);
  }
};

// Positions fit 32 bits, those a few tiles beyond the end, too.
bool fits(const Window& w, int64_t images) {
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
  if (!both_channels_last(conv)) return Support::no("needs channels-last x and y");
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
  effort.launches = is_grad_weight(conv) ? 2 : 1;
  return effort;
}

}  // namespace

const Candidate& depthwise_last() {
  static const ConvCandidate instance(
      {"cuda.depthwise_last", "convolutions only", supports, effort, make_step<PlannedStep<Last>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
