// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with channel multipliers up to 4 on NCHW tensors, any window, tiles staged in shared
// memory. forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/depthwise/depthwise_pass.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/depthwise_windows/staged_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::StagedPlan;
using kernels::cuda::StagedWeightPlan;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kMostChannels = 4;   // of the one side of a group
constexpr int64_t kMostTaps = 4096;    // of a group, whose weights lie in shared memory
constexpr int64_t kLargest = 1 << 27;  // size along an axis, padding and gaps counted
constexpr int64_t kLargestStride = 1 << 15;
constexpr int64_t kEnd31 = int64_t{1} << 31;

StagedPlan plan_of(const ConvPass& pass) {
  return kernels::cuda::staged_plan(shape_of(pass), pass.kind == ConvPassKind::kForward);
}
StagedWeightPlan weight_plan_of(const ConvPass& pass) {
  return kernels::cuda::staged_weight_plan(shape_of(pass));
}

std::string text_of(const kernels::cuda::Staged& p, int64_t shared) {
  return fmt::format("{} planes of {} x {} results a block{}, {} bytes", p.planes * p.depths, p.rows,
                     p.columns, p.split ? fmt::format(", every {}th row", p.classes) : "", shared);
}

class StagedStep final : public Step {
 public:
  explicit StagedStep(const ConvPass& pass) : pass_(pass), plan_(plan_of(pass)) {}
  std::string describe() const override { return text_of(plan_.staged, plan_.shared); }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::staged_gather(bind(pass_, bindings), pass_.kind == ConvPassKind::kForward, plan_,
                                 stream_of(context));
  }

 private:
  ConvPass pass_;
  StagedPlan plan_;
};

class StagedWeightStep final : public Step {
 public:
  explicit StagedWeightStep(const ConvPass& pass) : pass_(pass), plan_(weight_plan_of(pass)) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(plan_.parts * plan_.work.weights) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("{} tiles of taps, {}, {} parts", plan_.work.tiles,
                       text_of(plan_.work.staged, plan_.shared), plan_.parts);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::staged_grad_weight(bind(pass_, bindings), plan_, reinterpret_cast<float*>(workspace),
                                      stream_of(context));
  }

 private:
  ConvPass pass_;
  StagedWeightPlan plan_;
};

// Places fit the kernels' 32 bits.
bool fits(const problem::Window& w) {
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
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)) || !fits_31_bits(w_sizes(conv)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  if (!std::all_of(conv.axes.begin(), conv.axes.end(), fits))
    return Support::no("sizes or strides are too large");
  const auto& [d, h, w] = conv.axes;
  if (d.kernel * h.kernel > kMostTaps || d.kernel * h.kernel * w.kernel * std::max(xs, ys) > kMostTaps)
    return Support::no("needs at most 4096 weights a group");
  if (!is_planes(conv.x, x_sizes(conv)) || !is_planes(conv.y, y_sizes(conv)))
    return Support::no("needs dense row-major x and y");
  return conv.kind == ConvPassKind::kGradWeight ? has_room(weight_plan_of(conv), machine)
                                                : has_room(plan_of(conv), machine);
}

// Instructions, of which a lane begins one a cycle: half as many operations as products and sums.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kOfIssue = 0.5;
  const bool weight = conv.kind == ConvPassKind::kGradWeight;
  const double instructions = weight ? weight_plan_of(conv).instructions : plan_of(conv).instructions;
  Times times(conv, machine);
  times.add(instructions * 2 / (kOfIssue * std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6), weight ? 2 : 1,
            bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& depthwise_staged() {
  static const ConvCandidate instance({"cuda.depthwise_staged", "convolutions only", supports, effort,
                                       make_gather_or_weight<StagedStep, StagedWeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
