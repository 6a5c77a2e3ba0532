// SPDX-License-Identifier: Apache-2.0
// grad_input with up to 8 x channels a group, any window without dilation and any strides, in one launch
// (kernels/cuda/stems/stem_plan.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/candidate.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::StemPlan;

constexpr int64_t kMostTaps = 4096, kMostStride = 16;  // along rows and columns
constexpr int64_t kLargest = 1 << 24;                  // size along an axis, padding and gaps counted
constexpr int64_t kMostGrid = 65535, kEnd31 = int64_t{1} << 31;

StemPlan plan_of(const ConvPass& pass, bool aligned, const Machine& machine) {
  return kernels::cuda::stem_plan(shape_of(pass), aligned, machine.gpu.shared_bytes);
}

struct Stems {
  struct Plan {
    StemPlan aligned, any;
  };
  static Plan plan(const ConvPass& pass, const Machine& machine) {
    return {plan_of(pass, true, machine), plan_of(pass, false, machine)};
  }
  static std::string describe(const ConvPass& /*pass*/, const Plan& plan) {
    const StemPlan& p = plan.aligned;
    return fmt::format("boxes of {} x {}, {} classes, {} shares, {} channels at once{}",
                       p.thread_rows * p.rows, p.quads * kernels::cuda::kStemRun, p.classes, p.shares,
                       p.chunk, p.wide ? ", vectors" : "");
  }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float* /*sums*/,
                     Stream stream) {
    const bool aligned = kernels::cuda::is_aligned(conv.y.data, 4 * size_of(pass.y.dtype));
    kernels::cuda::stem_gather(conv, aligned ? plan.aligned : plan.any, stream);
  }
};

bool is_small(const Window& w) {
  for (const int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, std::abs(w.pad_lo)})
    if (size >= kLargest) return false;
  return w.y == 1 || (w.y * w.stride < kLargest && w.kernel * w.dilation < kLargest);
}

bool is_plain(const Window& w) {
  return (w.kernel == 1 || w.dilation == 1) && (w.y == 1 || w.stride <= kMostStride);
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.kind != ConvPassKind::kGradInput) return Support::no("grad_input only");
  if (conv.bias) return Support::no("adds no bias");
  if (conv.x_channels_per_group() > kernels::cuda::kStemChannels)
    return Support::no("{} x channels a group, at most {} are taken", conv.x_channels_per_group(),
                       kernels::cuda::kStemChannels);
  if (conv.groups > 1 && conv.x_channels_per_group() == 1 && conv.y_channels_per_group() <= 4)
    return Support::no("one x channel a group: depthwise_windows reads less often");
  if (!has_one_wide_type(conv)) return Support::no("needs f32, f16 or bf16, all the same");
  if (conv.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  const auto& [d, h, w] = conv.axes;
  if (!is_plain(h) || !is_plain(w)) return Support::no("needs dilation 1 and strides up to 16");
  if (!fits_31_bits(conv) || !is_small(d) || !is_small(h) || !is_small(w) || conv.batch > kMostGrid ||
      conv.groups * 2 > kMostGrid || !are_weights_near(conv))
    return Support::no("sizes beyond 32-bit counts");
  if (h.kernel > kMostTaps || w.kernel > kMostTaps || h.kernel * w.kernel > kMostTaps)
    return Support::no("needs at most 4096 taps along rows and columns");
  for (const bool aligned : {false, true}) {
    const StemPlan plan = plan_of(conv, aligned, machine);
    if (!plan.fits && plan.shared == 0)
      return Support::no("strides of {} x {} make {} classes of places, a block has no threads for as many",
                         plan.h.stride, plan.w.stride, plan.classes);
    if (!plan.fits)
      return Support::no("window and stride need {} bytes of shared memory, at most {} are taken",
                         plan.shared,
                         std::min<int64_t>(machine.gpu.shared_bytes, kernels::cuda::kStemShared));
    if (plan.blocks(shape_of(conv)) >= kEnd31) return Support::no("needs fewer than 2^31 blocks");
  }
  return Support::yes();
}

// The plan's model, whose multiprocessors make 128 products a cycle.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kOfModel = 0.7, kOperations = 2 * 128 * 132;  // a cycle's
  const StemPlan plan = plan_of(conv, true, machine);
  Times times(conv, machine);
  times.add(plan.cycles * kOperations / (kOfModel * std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6), 1,
            bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& stem_gather() {
  static const ConvCandidate instance(
      {"cuda.stem_gather", "grad_input only", supports, effort, make_step<PlannedStep<Stems>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
