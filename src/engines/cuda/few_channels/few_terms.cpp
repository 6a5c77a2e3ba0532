// SPDX-License-Identifier: Apache-2.0
// One launch.
#include "kernels/cuda/stems/few_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"

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
    kernels::cuda::few_terms(bind(shape_of(pass_), pass_, bindings), plan_, stream_of(context));
  }

 private:
  ConvPass pass_;
  FewTermsPlan plan_;
};

class FewTermsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.few_terms"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == problem::ConvPassKind::kGradWeight)
      return Support::no("forward and grad_input only");
    if (!has_one_wide_type(*conv)) return Support::no("needs f32, f16 or bf16, all the same");
    if (conv->rounding != OperandRounding::kNone) return Support::no("does not round operands");
    if (!fits_31_bits(x_sizes(*conv)) || !fits_31_bits(y_sizes(*conv)) || !fits_31_bits(w_sizes(*conv)) ||
        !has_small_windows(*conv))
      return Support::no("sizes beyond 32-bit counts");
    if (terms_of(*conv) > kernels::cuda::kFewTerms)
      return Support::no(fmt::format("sums of {} products, at most {} are taken", terms_of(*conv),
                                     kernels::cuda::kFewTerms));
    if (conv->groups * plan_of(*conv).splits > kMostGrid) return Support::no("needs at most 65535 groups");
    return Support::yes();
  }
  // The plan's model, of a GPU whose FP32 units make 128 products a cycle and multiprocessor.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    constexpr double kOperations = 2 * 128 * 132;
    const auto& conv = std::get<ConvPass>(pass);
    Times times(pass, machine);
    times.add(plan_of(conv).cycles * kOperations / (std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6), 1,
              bytes_of(conv));
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<FewTermsStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& few_terms() {
  static const FewTermsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
