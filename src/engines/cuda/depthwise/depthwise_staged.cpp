// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with channel multipliers up to 4 on NCHW tensors, any window, tiles staged in shared
// memory. forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "kernels/cuda/depthwise_windows/staged_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::StagedPlan;
using kernels::cuda::StagedWeightPlan;

constexpr int64_t kMostChannels = 4;   // of the one side of a group
constexpr int64_t kMostTaps = 4096;    // of a group, whose weights lie in shared memory
constexpr int64_t kLargest = 1 << 27;  // size along an axis, padding and gaps counted
constexpr int64_t kLargestStride = 1 << 15;
constexpr int64_t kEnd31 = int64_t{1} << 31;

std::string text_of(const kernels::cuda::Staged& p, int64_t shared) {
  return fmt::format("{} planes of {} x {} results a block{}, {} bytes", p.planes * p.depths, p.rows,
                     p.columns, p.split ? fmt::format(", every {}th row", p.classes) : "", shared);
}

struct Gather {
  using Plan = StagedPlan;
  static Plan plan(const ConvPass& pass) {
    return kernels::cuda::staged_plan(shape_of(pass), is_forward(pass));
  }
  static std::string describe(const ConvPass&, const Plan& plan) { return text_of(plan.staged, plan.shared); }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float*, Stream stream) {
    kernels::cuda::staged_gather(conv, is_forward(pass), plan, stream);
  }
};

struct Weight {
  using Plan = StagedWeightPlan;
  static Plan plan(const ConvPass& pass) { return kernels::cuda::staged_weight_plan(shape_of(pass)); }
  static int64_t sums(const ConvPass&, const Plan& plan) { return plan.parts * plan.work.weights; }
  static std::string describe(const ConvPass&, const Plan& plan) {
    return fmt::format("{} tiles of taps, {}, {} parts", plan.work.tiles,
                       text_of(plan.work.staged, plan.shared), plan.parts);
  }
  static void launch(const ConvPass&, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    kernels::cuda::staged_grad_weight(conv, plan, sums, stream);
  }
};

// Places fit the kernels' 32 bits.
bool fits(const Window& w) {
  const int64_t stride = w.y == 1 ? 1 : w.stride, dilation = w.kernel == 1 ? 1 : w.dilation;
  for (const int64_t size : {w.x, w.y, w.kernel, dilation, std::abs(w.pad_lo)})
    if (size > kLargest) return false;
  return stride <= kLargestStride && w.y * stride <= kLargest && w.kernel * dilation <= kLargest;
}

template <class Plan>
Support has_room(const Plan& plan, const Machine& machine) {
  if (!plan.fits || plan.shared > machine.gpu.shared_bytes)
    return Support::no("what a few rows read does not fit into shared memory");
  if (plan.blocks >= kEnd31) return Support::no("needs fewer than 2^31 blocks");
  return Support::yes();
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (const Support depthwise = is_depthwise(conv, kMostChannels); !depthwise.accepted()) return depthwise;
  const int64_t xs = conv.x_channels_per_group(), ys = conv.y_channels_per_group();
  if (!fits_31_bits(conv)) return Support::no("needs 1 to 2^31 - 1 elements");
  if (!std::all_of(conv.axes.begin(), conv.axes.end(), fits))
    return Support::no("sizes or strides are too large");
  const auto& [d, h, w] = conv.axes;
  if (d.kernel * h.kernel > kMostTaps || d.kernel * h.kernel * w.kernel * std::max(xs, ys) > kMostTaps)
    return Support::no("needs at most 4096 weights a group");
  if (!both_planes(conv)) return Support::no("needs dense row-major x and y");
  return is_grad_weight(conv) ? has_room(Weight::plan(conv), machine) : has_room(Gather::plan(conv), machine);
}

// Instructions, of which a lane begins one a cycle: half as many operations as products and sums.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kOfIssue = 0.5;
  const bool weight = is_grad_weight(conv);
  const double instructions = weight ? Weight::plan(conv).instructions : Gather::plan(conv).instructions;
  Times times(conv, machine);
  times.add(instructions * 2 / (kOfIssue * std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6), weight ? 2 : 1,
            bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& depthwise_staged() {
  static const ConvCandidate instance({"cuda.depthwise_staged", "convolutions only", supports, effort,
                                       make_gather_or_weight<PlannedStep<Gather>, PlannedStep<Weight>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
