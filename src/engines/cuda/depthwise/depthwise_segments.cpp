// SPDX-License-Identifier: Apache-2.0
// 1-D depthwise convolutions on NCW tensors, any length, stride and dilation
// (kernels/cuda/depthwise_windows/segments_plan.h). forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/depthwise/depthwise_pass.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/depthwise_windows/segments_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GatherSegments;
using kernels::cuda::ItemKind;
using kernels::cuda::Segments;
using kernels::cuda::WeightSegments;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kLongestKernel = 64;
constexpr int64_t kLargestStride = 16;
constexpr int64_t kLongestReach = 8192;  // elements from the first tap to the last
constexpr int64_t kLargest = 1 << 26;    // size of a line, padding counted
constexpr int64_t kEnd31 = int64_t{1} << 31;

bool is_forward(const ConvPass& pass) { return pass.kind == ConvPassKind::kForward; }

std::string text_of(const Segments& p) {
  const std::string lines =
      p.pieces == 1 ? fmt::format("{} lines a block", p.in_block) : fmt::format("{} pieces a line", p.pieces);
  return fmt::format("{}, {}", lines, p.kind == ItemKind::kApart ? "lanes side by side" : "sliding");
}

class GatherStep final : public Step {
 public:
  explicit GatherStep(const ConvPass& pass)
      : pass_(pass), plan_(kernels::cuda::gather_segments(shape_of(pass), is_forward(pass))) {}
  std::string describe() const override { return text_of(plan_.segments); }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::segments_gather(bind(pass_, bindings), is_forward(pass_), plan_, stream_of(context));
  }

 private:
  ConvPass pass_;
  GatherSegments plan_;
};

class WeightStep final : public Step {
 public:
  explicit WeightStep(const ConvPass& pass)
      : pass_(pass), plan_(kernels::cuda::weight_segments(shape_of(pass))) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(plan_.parts * plan_.weights) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("{}, {} parts", text_of(plan_.segments), plan_.parts);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::segments_grad_weight(bind(pass_, bindings), plan_, reinterpret_cast<float*>(workspace),
                                        stream_of(context));
  }

 private:
  ConvPass pass_;
  WeightSegments plan_;
};

struct Needs {
  int64_t blocks, shared;
};

Needs needs_of(const ConvPass& pass) {
  if (pass.kind == ConvPassKind::kGradWeight) {
    const WeightSegments plan = kernels::cuda::weight_segments(shape_of(pass));
    return {plan.blocks, plan.shared};
  }
  const GatherSegments plan = kernels::cuda::gather_segments(shape_of(pass), is_forward(pass));
  return {plan.blocks, plan.shared};
}

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support depthwise = is_depthwise(conv); !depthwise.accepted()) return depthwise;
  for (size_t i = 0; i < 2; ++i) {
    const problem::Window& a = conv.axes[i];
    if (a.x != 1 || a.y != 1 || a.kernel != 1 || a.pad_lo != 0) return Support::no("one axis only");
  }
  const problem::Window& w = conv.axes[2];
  if (w.kernel > kLongestKernel) return Support::no("needs at most 64 taps");
  if (w.y > 1 && w.stride > kLargestStride) return Support::no("needs strides up to 16");
  if (w.kernel > 1 && w.dilation > kLongestReach / (w.kernel - 1))
    return Support::no("needs taps that reach at most 8192 elements");
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)) || !fits_31_bits(w_sizes(conv)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  if (w.x > kLargest || w.y > kLargest / (w.y > 1 ? w.stride : 1) || std::abs(w.pad_lo) > kLargest)
    return Support::no("lines or padding are too long");
  if (!is_planes(conv.x, x_sizes(conv)) || !is_planes(conv.y, y_sizes(conv)))
    return Support::no("needs dense row-major x and y");
  const auto [blocks, shared] = needs_of(conv);
  if (blocks >= kEnd31 || shared > kernels::cuda::kSegmentShared)
    return Support::no("too many blocks, or too much shared memory");
  return Support::yes();
}

// A product takes two instructions where values are shared, four where each reads its own. What the taps
// reach beyond a piece is read again.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kSliding = 2, kOther = 4;
  const bool weight = conv.kind == ConvPassKind::kGradWeight;
  const Segments p = weight ? kernels::cuda::weight_segments(shape_of(conv)).segments
                            : kernels::cuda::gather_segments(shape_of(conv), is_forward(conv)).segments;
  Effort effort = effort_of(conv);
  effort.operations *= p.kind == ItemKind::kApart ? kOther : kSliding / kernels::cuda::filled(p);
  if (p.pieces > 1) {
    const double staged = static_cast<double>(p.pieces) * p.span;
    effort.bytes *= std::max(1.0, (1 + staged / p.axis.source) / 2);
  }
  effort.launches = weight ? 2 : 1;
  return on_fp32_units(effort, conv, machine);
}

}  // namespace

const Candidate& depthwise_segments() {
  static const ConvCandidate instance({"cuda.depthwise_segments", "convolutions only", supports, effort,
                                       make_gather_or_weight<GatherStep, WeightStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
