// SPDX-License-Identifier: Apache-2.0
// One launch.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/stems/few_terms_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::FewTermsPlan;
using problem::ConvPass;

constexpr int64_t kMostGrid = 65535;

FewTermsPlan plan_of(const ConvPass& pass) {
  return kernels::cuda::few_terms_plan(shape_of(pass), pass.kind == problem::ConvPassKind::kForward);
}

class FewTermsStep final : public Step {
 public:
  explicit FewTermsStep(const ConvPass& pass) : pass_(pass), plan_(plan_of(pass)) {}
  std::string describe() const override {
    return fmt::format("{} terms, {} channels a block{}", plan_.terms,
                       std::min(plan_.of_split, plan_.to_channels),
                       plan_.channels_fast ? ", channels side by side" : "");
  }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::few_terms(bind(pass_, bindings), plan_, stream_of(context));
  }

 private:
  ConvPass pass_;
  FewTermsPlan plan_;
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (conv.kind == problem::ConvPassKind::kGradWeight) return Support::no("forward and grad_input only");
  if (!has_one_wide_type(conv)) return Support::no("needs f32, f16 or bf16, all the same");
  if (conv.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)) || !fits_31_bits(w_sizes(conv)) ||
      !has_small_windows(conv))
    return Support::no("sizes beyond 32-bit counts");
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
      {"cuda.few_terms", "forward and grad_input only", supports, effort, make_step<FewTermsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
