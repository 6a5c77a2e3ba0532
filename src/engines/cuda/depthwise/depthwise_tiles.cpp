// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with large kernels, up to 64 x 64, stride 1, NCHW
// (kernels/cuda/depthwise/depthwise.h). forward and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "kernels/cuda/depthwise/depthwise.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::TilesKernel;

constexpr int64_t kLongestKernel = 64;
constexpr int64_t kMostStrips = 256;  // of eight taps: a thread each

struct Tiles {
  using Plan = AlignedKernels<TilesKernel>;
  static Plan plan(const ConvPass& pass) {
    const Conv conv = shape_of(pass);
    Plan plan([&](int alignment) { return kernels::cuda::tiles_kernel(conv, alignment); });
    if (is_grad_weight(pass))
      plan.set_parts([&](TilesKernel kernel) { return kernels::cuda::depthwise_tiles_parts(conv, kernel); });
    return plan;
  }
  static int64_t sums(const ConvPass& pass, const Plan& plan) { return plan.sums(pass); }
  static std::string describe(const ConvPass& pass, const Plan& plan) { return plan.describe(pass); }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    is_grad_weight(pass)
        ? kernels::cuda::depthwise_tiles_grad_weight(conv, plan.of(conv), sums, stream)
        : kernels::cuda::depthwise_tiles_gather(conv, is_forward(pass), plan.of(conv), stream);
  }
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support depthwise = is_depthwise(conv); !depthwise.accepted()) return depthwise;
  const auto& [d, h, w] = conv.axes;
  if (d.x != 1 || d.y != 1 || d.kernel != 1 || d.pad_lo != 0) return Support::no("one or two axes only");
  for (const Window& axis : {h, w})
    if (axis.stride != 1 || axis.dilation != 1 || axis.kernel > kLongestKernel || axis.pad_lo > 1 << 20 ||
        axis.pad_lo < -(1 << 20))
      return Support::no("needs stride 1, dilation 1, at most 64 taps an axis");
  const bool one_axis = h.x == 1 && h.y == 1 && h.kernel == 1 && h.pad_lo == 0;
  if (one_axis && kernels::cuda::tiles_kernel(shape_of(conv), 16) == TilesKernel::kTiles)
    return Support::no("one axis needs f16 or bf16 and lines of multiples of 8");
  if (h.kernel * ceil_div(w.kernel, 8) > kMostStrips) return Support::no("too many taps for a block");
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  for (const auto& [height, width] : {std::pair(h.x, w.x), std::pair(h.y, w.y)})
    if (ceil_div(height, 32) * ceil_div(width, 32) > 65535)
      return Support::no("needs planes of at most 65535 tiles");
  if (!both_planes(conv)) return Support::no("needs dense row-major x and y");
  return Support::yes();
}

// Spans multiply on tensor cores and move bytes nearly three times as fast as the others.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kSpansBytes = 0.17;
  // Of a block's beginning and end and of its weights: operations that take as long.
  constexpr double kPlane = 1.1e5, kTap = 1600, kBlocks = 264;
  const auto shape = shape_of(conv);
  const TilesKernel kernel = kernels::cuda::tiles_kernel(shape, 16);
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  Effort effort = effort_of(conv);
  if (kernel == TilesKernel::kSpans) {
    effort.bytes *= kSpansBytes;
    return effort;
  }
  if (is_grad_weight(conv)) {
    const int64_t parts = kernels::cuda::depthwise_tiles_parts(shape, kernel);
    effort.operations *= std::max(1.0, kBlocks / number(parts * conv.groups));
  }
  effort.operations +=
      number(conv.batch * conv.groups) * (kPlane + kTap * number(conv.axes[1].kernel * conv.axes[2].kernel));
  return on_fp32_units(effort, conv, machine);
}

}  // namespace

const Candidate& depthwise_tiles() {
  static const ConvCandidate instance(
      {"cuda.depthwise_tiles", "convolutions only", supports, effort, make_step<PlannedStep<Tiles>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
