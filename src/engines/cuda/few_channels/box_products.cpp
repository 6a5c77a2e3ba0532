// SPDX-License-Identifier: Apache-2.0
// forward with up to 16 x channels a group on tensor cores, any window and strides, in one launch
// (kernels/cuda/stems/box_plan.h).
#include <fmt/format.h>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/product_limits.h"
#include "kernels/cuda/stems/box_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::BoxPlan;

constexpr int64_t kMostChannels = 16, kMostTerms = 4096;
constexpr int64_t kMostGrid = 65535;

struct Boxes {
  using Plan = BoxPlan;
  static Plan plan(const ConvPass& pass) { return kernels::cuda::box_plan(shape_of(pass)); }
  static std::string describe(const ConvPass& /*pass*/, const Plan& plan) {
    const auto& p = plan.product;
    return fmt::format("boxes of {} x {} x {} places by {} channels, {} a block, {} terms, {} bytes",
                       p.d.places, p.h.places, p.w.places, p.columns, p.rounds, p.terms, plan.shared);
  }
  static void launch(const ConvPass& /*pass*/, const Conv& conv, const Plan& plan, float* /*sums*/,
                     Stream stream) {
    kernels::cuda::box_products(conv, plan, stream);
  }
};

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.kind != ConvPassKind::kForward) return Support::no("forward only");
  const int64_t channels = conv.x_channels_per_group();
  if (channels > kMostChannels)
    return Support::no("{} x channels a group, at most {} are taken", channels, kMostChannels);
  if (!has_one_wide_type(conv)) return Support::no("needs f32, f16 or bf16, all the same");
  if (conv.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  if (!fits_31_bits(conv) || !has_small_windows(conv) || !are_weights_near(conv))
    return Support::no("sizes beyond 32-bit counts");
  const int64_t terms = terms_of(conv);
  if (terms > kMostTerms) return Support::no("needs at most {} taps and channels", kMostTerms);
  if (conv.x.dtype == DType::kF32)
    if (const Support support = takes_split_products(terms); !support.accepted()) return support;
  const BoxPlan plan = kernels::cuda::box_plan(shape_of(conv));
  if (!plan.fits || plan.shared > machine.gpu.shared_bytes)
    return Support::no("what a few windows read does not fit into shared memory");
  if (conv.groups * plan.product.column_tiles > kMostGrid)
    return Support::no("needs at most 65535 tiles of channels");
  return Support::yes();
}

Effort effort(const ConvPass& conv, const Machine& machine) {
  return of_cycles(conv, kernels::cuda::box_plan(shape_of(conv)).cycles, machine);
}

}  // namespace

const Candidate& box_products() {
  static const ConvCandidate instance(
      {"cuda.box_products", "forward only", supports, effort, make_step<PlannedStep<Boxes>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
