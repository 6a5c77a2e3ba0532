// SPDX-License-Identifier: Apache-2.0
// Operands into rows of channels, the product in parts, their sum.
#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/dense/weight_step.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/dense/weight_parts.h"
#include "kernels/cuda/dense/wgmma_weight.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::WeightPlan;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr double kEnds = 3;               // microseconds of a kernel's beginning and end
constexpr double kPacedProcessors = 132;  // where the cuts were measured

class WeightProductStep final : public WeightStep {
 public:
  WeightProductStep(const ConvPass& pass, const WeightPlan& plan) : WeightStep(pass), plan_(plan) {}
  std::string describe() const override {
    return fmt::format("tiles {}, {}, {} blocks, {} parts", name_of(plan_.cut), describe_rows(), plan_.blocks,
                       plan_.parts);
  }

 private:
  size_t product_bytes() const override {
    return static_cast<size_t>(plan_.parts * plan_.walk.weights) * sizeof(float);
  }
  bool multiply(const kernels::cuda::Conv& conv, const void* x, const void* y, std::byte* workspace,
                kernels::cuda::Stream stream) const override {
    auto* const parts = reinterpret_cast<float*>(workspace);
    if (!kernels::cuda::wgmma_weight(plan_, type(), x, y, parts, stream)) return false;
    const auto repair = plan_.fills ? kernels::cuda::WeightRepair::kAll : kernels::cuda::WeightRepair::kNone;
    const kernels::cuda::WeightParts sums{conv, repair, false, plan_.walk.x_channels, parts, plan_.parts};
    kernels::cuda::add_weight_parts(in_walked_parts(sums, plan_), stream);
    return true;
  }

  WeightPlan plan_;
};

bool is_too_large(const ConvPass& p) {
  if (!fits_31_bits(x_sizes(p)) || !fits_31_bits(y_sizes(p))) return true;
  // Walks are longer than y by what lies between lines.
  Checked places = p.batch;
  for (const problem::Window& w : p.axes) places = places * (w.y + (w.kernel - 1) * w.dilation);
  return !places.get() || *places.get() >= int64_t{1} << 30;
}

class WeightProductsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.weight_products"; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != ConvPassKind::kGradWeight) return Support::no("grad_weight only");
    if (conv->groups != 1) return Support::no("no groups");
    if (conv->x.dtype != conv->y.dtype || (conv->x.dtype != DType::kF16 && conv->x.dtype != DType::kBF16))
      return Support::no("needs f16 or bf16 operands");
    if (is_too_large(*conv)) return Support::no("needs 1 to 2^31 - 1 elements in x and y");
    if (!has_warpgroups(machine)) return Support::no("needs a GPU of compute capability 9.0");
    WeightPlan plan;
    if (!kernels::cuda::plan_wgmma_weight(shape_of(*conv), &plan))
      return Support::no("few channels, many taps, or beyond what the copy engine reaches");
    return Support::yes();
  }
  // The plan's own time, in which parts are added, and copies of what does not lie as rows.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& conv = std::get<ConvPass>(pass);
    Times times(pass, machine);
    add_row_copies(conv, &times);
    WeightPlan plan;
    kernels::cuda::plan_wgmma_weight(shape_of(conv), &plan);
    times.add(plan.microseconds * kPacedProcessors / processors_of(machine), 2, bytes_of(conv));
    times.add(kEnds, 0);
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    const auto& conv = std::get<ConvPass>(pass);
    WeightPlan plan;
    kernels::cuda::plan_wgmma_weight(shape_of(conv), &plan);
    return std::make_unique<WeightProductStep>(conv, plan);
  }
};

}  // namespace

const Candidate& weight_products() {
  static const WeightProductsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
