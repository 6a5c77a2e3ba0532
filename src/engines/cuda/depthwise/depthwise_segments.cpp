// SPDX-License-Identifier: Apache-2.0
// 1-D depthwise convolutions on NCW tensors, any length, stride and dilation
// (kernels/cuda/depthwise_windows/segments_plan.h). forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "kernels/cuda/depthwise_windows/segments_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GatherSegments;
using kernels::cuda::ItemKind;
using kernels::cuda::Segments;
using kernels::cuda::WeightSegments;

constexpr int64_t kLongestKernel = 64;
constexpr int64_t kLargestStride = 16;
constexpr int64_t kLongestReach = 8192;  // elements from the first tap to the last
constexpr int64_t kLargest = 1 << 26;    // size of a line, padding counted
constexpr int64_t kEnd31 = int64_t{1} << 31;

std::string text_of(const Segments& p) {
  const std::string lines =
      p.pieces == 1 ? fmt::format("{} lines a block", p.in_block) : fmt::format("{} pieces a line", p.pieces);
  return fmt::format("{}, {}", lines, p.kind == ItemKind::kApart ? "lanes side by side" : "sliding");
}

struct Gather {
  using Plan = GatherSegments;
  static Plan plan(const ConvPass& pass) {
    return kernels::cuda::gather_segments(shape_of(pass), is_forward(pass));
  }
  static std::string describe(const ConvPass&, const Plan& plan) { return text_of(plan.segments); }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float*, Stream stream) {
    kernels::cuda::segments_gather(conv, is_forward(pass), plan, stream);
  }
};

struct Weight {
  using Plan = WeightSegments;
  static Plan plan(const ConvPass& pass) { return kernels::cuda::weight_segments(shape_of(pass)); }
  static int64_t sums(const ConvPass&, const Plan& plan) { return plan.parts * plan.weights; }
  static std::string describe(const ConvPass&, const Plan& plan) {
    return fmt::format("{}, {} parts", text_of(plan.segments), plan.parts);
  }
  static void launch(const ConvPass&, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    kernels::cuda::segments_grad_weight(conv, plan, sums, stream);
  }
};

template <class Plan>
bool has_room(const Plan& plan) {
  return plan.blocks < kEnd31 && plan.shared <= kernels::cuda::kSegmentShared;
}

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support depthwise = is_depthwise(conv); !depthwise.accepted()) return depthwise;
  for (size_t i = 0; i < 2; ++i) {
    const Window& a = conv.axes[i];
    if (a.x != 1 || a.y != 1 || a.kernel != 1 || a.pad_lo != 0) return Support::no("one axis only");
  }
  const Window& w = conv.axes[2];
  if (w.kernel > kLongestKernel) return Support::no("needs at most 64 taps");
  if (w.y > 1 && w.stride > kLargestStride) return Support::no("needs strides up to 16");
  if (w.kernel > 1 && w.dilation > kLongestReach / (w.kernel - 1))
    return Support::no("needs taps that reach at most 8192 elements");
  if (!fits_31_bits(conv)) return Support::no("needs 1 to 2^31 - 1 elements");
  if (w.x > kLargest || w.y > kLargest / (w.y > 1 ? w.stride : 1) || std::abs(w.pad_lo) > kLargest)
    return Support::no("lines or padding are too long");
  if (!both_planes(conv)) return Support::no("needs dense row-major x and y");
  if (!(is_grad_weight(conv) ? has_room(Weight::plan(conv)) : has_room(Gather::plan(conv))))
    return Support::no("too many blocks, or too much shared memory");
  return Support::yes();
}

// A product takes two instructions where values are shared, four where each reads its own. What the taps
// reach beyond a piece is read again.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kSliding = 2, kOther = 4;
  const Segments p = is_grad_weight(conv) ? Weight::plan(conv).segments : Gather::plan(conv).segments;
  Effort effort = effort_of(conv);
  effort.operations *= p.kind == ItemKind::kApart ? kOther : kSliding / kernels::cuda::filled(p);
  if (p.pieces > 1) {
    const double staged = static_cast<double>(p.pieces) * p.span;
    effort.bytes *= std::max(1.0, (1 + staged / p.axis.source) / 2);
  }
  effort.launches = is_grad_weight(conv) ? 2 : 1;
  return on_fp32_units(effort, conv, machine);
}

}  // namespace

const Candidate& depthwise_segments() {
  static const ConvCandidate instance({"cuda.depthwise_segments", "convolutions only", supports, effort,
                                       make_gather_or_weight<PlannedStep<Gather>, PlannedStep<Weight>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
