// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on NCHW planes, 3x3 to 7x7, three kernels (kernels/cuda/depthwise/depthwise.h).
// forward and grad_input take one launch, grad_weight one or two.
#include "kernels/cuda/depthwise/depthwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::Axis;
using kernels::cuda::DepthwiseKernel;

constexpr int64_t kMostPadding = 1 << 24;

// One channel a group, FP32, FP16 or BF16 throughout, no rounding of operands, kernels of 3x3, 5x5 or 7x7 in
// two axes, stride 1 or 2, dilation 1, 31-bit sizes.
Support is_small_square(const ConvPass& pass) {
  if (const Support depthwise = is_depthwise(pass); !depthwise.accepted()) return depthwise;
  const Window &d = pass.axes[0], &h = pass.axes[1], &w = pass.axes[2];
  const auto fits = [&](const Window& a) {
    return a.kernel == w.kernel && a.stride == w.stride && a.dilation == 1 &&
           std::abs(a.pad_lo) <= kMostPadding;
  };
  const bool flat = d.x == 1 && d.y == 1 && d.kernel == 1 && d.pad_lo == 0;
  if (!flat || (w.kernel != 3 && w.kernel != 5 && w.kernel != 7) || w.stride > 2 || !fits(h) || !fits(w))
    return Support::no("needs kernels of 3x3, 5x5 or 7x7, stride 1 or 2, dilation 1");
  if (w.stride != 1 && is_forward(pass)) return Support::no("forward needs stride 1");
  if (!fits_31_bits(x_sizes(pass)) || !fits_31_bits(y_sizes(pass)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  return Support::yes();
}

// y[o] = Σ_k x[o − P + k]·w[k] is grad_input of a convolution whose kernel is turned round, and whose y is x.
Conv as_grad_input(Conv conv) {
  std::swap(conv.x, conv.y);
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    Axis& a = conv.axes[i];
    int64_t& stride = conv.w.strides[i + 2];
    std::swap(a.x, a.y);
    a.pad = a.kernel - 1 - a.pad;
    last += (a.kernel - 1) * stride;
    stride = -stride;
  }
  if (conv.w.data != nullptr)
    conv.w.data = static_cast<std::byte*>(conv.w.data) + last * static_cast<int64_t>(size_of(conv.w.dtype));
  return conv;
}

// As the kernels take it.
Conv turned(const ConvPass& pass, const Conv& conv) { return is_forward(pass) ? as_grad_input(conv) : conv; }

template <DepthwiseKernel kWanted>
struct Depthwise {
  using Plan = AlignedKernels<DepthwiseKernel>;
  static Plan plan(const ConvPass& pass) {
    const bool gather = !is_grad_weight(pass);
    const Conv conv = turned(pass, shape_of(pass));
    Plan plan([&](int alignment) {
      return kernels::cuda::has_depthwise_kernel(kWanted, conv, gather, alignment)
                 ? kWanted
                 : kernels::cuda::depthwise_kernel(conv, gather, alignment);
    });
    if (!gather)
      plan.set_parts([&](DepthwiseKernel kernel) { return kernels::cuda::depthwise_parts(conv, kernel); });
    return plan;
  }
  static int64_t sums(const ConvPass& pass, const Plan& plan) { return plan.sums(pass); }
  static std::string describe(const ConvPass& pass, const Plan& plan) { return plan.describe(pass); }
  static void launch(const ConvPass& pass, const Conv& given, const Plan& plan, float* sums, Stream stream) {
    const Conv conv = turned(pass, given);
    is_grad_weight(pass) ? kernels::cuda::depthwise_grad_weight(conv, plan.of(conv), sums, stream)
                         : kernels::cuda::depthwise_grad_input(conv, plan.of(conv), stream);
  }
};

// In the order of DepthwiseKernel.
constexpr const char* kNeeds[] = {
    "needs planes of 14x14 or of up to 64 places in f16 or bf16, stride 1, padding of half a kernel",
    "needs 5x5 or 7x7 in f16 or bf16, stride 1, padding of half a kernel, rows of chunks of 16 bytes", ""};

template <DepthwiseKernel kKernel>
Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  constexpr int kAligned = 16;
  if (const Support square = is_small_square(conv); !square.accepted()) return square;
  if (conv.bias && kKernel != DepthwiseKernel::kRows) return Support::no("adds no bias");
  for (const Sizes5& sizes : {x_sizes(conv), y_sizes(conv)})
    if (sizes[3] * sizes[4] > int64_t{1} << 24) return Support::no("needs planes under 2^24");
  if (!both_planes(conv)) return Support::no("needs dense row-major x and y");
  const bool has = kernels::cuda::has_depthwise_kernel(kKernel, turned(conv, shape_of(conv)),
                                                       !is_grad_weight(conv), kAligned);
  return has ? Support::yes() : Support::no(kNeeds[static_cast<size_t>(kKernel)]);
}

template <DepthwiseKernel kKernel>
Effort effort(const ConvPass& conv, const Machine& machine) {
  if (kKernel != DepthwiseKernel::kRows) return effort_of(conv);  // on tensor cores
  Effort effort = on_fp32_units(effort_of(conv), conv, machine);
  // A second kernel adds parts, and reductions keep the units waiting.
  if (is_grad_weight(conv)) {
    effort.launches = 2;
    effort.operations *= 2;
    effort.bytes *= 1.5;
  }
  return effort;
}

template <DepthwiseKernel kKernel>
const Candidate& candidate(const char* name) {
  static const ConvCandidate instance({name, "convolutions only", supports<kKernel>, effort<kKernel>,
                                       make_step<PlannedStep<Depthwise<kKernel>>>});
  return instance;
}

}  // namespace

const Candidate& depthwise_small() { return candidate<DepthwiseKernel::kSmall>("cuda.depthwise_small"); }
const Candidate& depthwise_bands() { return candidate<DepthwiseKernel::kBands>("cuda.depthwise_bands"); }
const Candidate& depthwise_rows() { return candidate<DepthwiseKernel::kRows>("cuda.depthwise_rows"); }

}  // namespace retrograd::engines::cuda
