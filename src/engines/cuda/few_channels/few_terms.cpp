// SPDX-License-Identifier: Apache-2.0
// One launch.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/product_limits.h"
#include "kernels/cuda/stems/few_terms_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::FewTermsPlan;

constexpr int64_t kMostGrid = 65535;

FewTermsPlan plan_of(const ConvPass& pass) {
  return kernels::cuda::few_terms_plan(shape_of(pass), is_forward(pass));
}

struct FewTerms {
  using Plan = FewTermsPlan;
  static Plan plan(const ConvPass& pass) { return plan_of(pass); }
  static std::string describe(const ConvPass& /*pass*/, const Plan& plan) {
    return fmt::format("{} terms, {} channels a block{}", plan.terms,
                       std::min(plan.of_split, plan.to_channels),
                       plan.channels_fast ? ", channels side by side" : "");
  }
  static void launch(const ConvPass& /*pass*/, const Conv& conv, const Plan& plan, float* /*sums*/,
                     Stream stream) {
    kernels::cuda::few_terms(conv, plan, stream);
  }
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (is_grad_weight(conv)) return Support::no("forward and grad_input only");
  if (!has_one_wide_type(conv)) return Support::no("needs f32, f16 or bf16, all the same");
  if (conv.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  if (!fits_31_bits(conv) || !has_small_windows(conv)) return Support::no("sizes beyond 32-bit counts");
  if (terms_of(conv) > kernels::cuda::kFewTerms)
    return Support::no("sums of {} products, at most {} are taken", terms_of(conv), kernels::cuda::kFewTerms);
  if (conv.groups * plan_of(conv).splits > kMostGrid) return Support::no("needs at most 65535 groups");
  return Support::yes();
}

Effort effort(const ConvPass& conv, const Machine& machine) {
  return of_cycles(conv, plan_of(conv).cycles, machine);
}

}  // namespace

const Candidate& few_terms() {
  static const ConvCandidate instance(
      {"cuda.few_terms", "forward and grad_input only", supports, effort, make_step<PlannedStep<FewTerms>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
