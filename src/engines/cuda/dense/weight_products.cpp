// SPDX-License-Identifier: Apache-2.0
// grad_weight in 16-bit types on Hopper (wgmma): operands as rows of channels, x as im2col patches where it
// has few channels; a split-K product, then the sum of its parts.
#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/dense/weight_step.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/dense_weight/wgmma_weight.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::WeightPlan;
using kernels::cuda::WeightResults;

constexpr double kBytes = 1.9;  // of a copy that a byte of few channels takes as long as

// Patches where x has too few channels for tiles of one tap, and no cut takes all taps at once.
struct Form {
  bool found, patches = false;
  WeightPlan plan{};
};
Form form_of(const ConvPass& p) {
  Form form;
  const Conv conv = shape_of(p);
  form.found = kernels::cuda::plan_wgmma_weight(conv, whole_results(conv, p.x.dtype), &form.plan);
  if (form.found || !has_patches(p, half_row_type(p))) return form;
  form.patches = true;
  form.found = kernels::cuda::plan_wgmma_weight(kernels::cuda::conv_of_patches(conv), WeightResults::kParts,
                                                &form.plan);
  return form;
}

class WeightProductStep final : public WeightStep {
 public:
  WeightProductStep(const ConvPass& pass, const Form& form)
      : WeightStep(pass, form.patches), plan_(form.plan), patches_(form.patches) {}
  std::string describe() const override {
    return fmt::format("tiles {}, {}, {} blocks, {} parts", name_of(plan_.cut), describe_rows(), plan_.blocks,
                       plan_.parts);
  }

 private:
  size_t product_bytes() const override {
    return result_bytes(plan_.results, plan_.parts * plan_.walk.weights);
  }
  bool multiply(const Conv& conv, const void* x, const void* y, std::byte* workspace,
                Stream stream) const override {
    auto* const parts = reinterpret_cast<float*>(workspace);
    void* const results = target_of(plan_.results, conv, workspace);
    if (!kernels::cuda::wgmma_weight(plan_, type(), x, y, results, parts, stream)) return false;
    if (results != nullptr) {
      take_results(plan_.results, conv, plan_.walk.x_channels, workspace, stream);
      return true;
    }
    using kernels::cuda::WeightRepair;
    const auto repair = patches_ && leaves_source(pass()) ? WeightRepair::kEdges
                        : plan_.fills                     ? WeightRepair::kAll
                                                          : WeightRepair::kNone;
    const kernels::cuda::WeightParts sums{conv, repair, patches_, plan_.walk.x_channels, parts, plan_.parts};
    kernels::cuda::add_weight_parts(in_walked_parts(sums, plan_), stream);
    return true;
  }

  WeightPlan plan_;
  bool patches_;
};

bool is_too_large(const ConvPass& p) {
  if (!fits_31_bits(x_sizes(p)) || !fits_31_bits(y_sizes(p))) return true;
  // Walks are longer than y by what lies between lines.
  Checked places = p.batch;
  for (const Window& w : p.axes) places = places * (w.y + (w.kernel - 1) * w.dilation);
  return !places.get() || *places.get() >= int64_t{1} << 30;
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (!is_grad_weight(conv)) return Support::no("grad_weight only");
  if (conv.groups != 1) return Support::no("no groups");
  if (conv.x.dtype != conv.y.dtype || !is_half_type(conv.x.dtype))
    return Support::no("needs f16 or bf16 operands");
  if (is_rounded(conv, conv.x.dtype)) return Support::no("does not round operands");
  if (is_too_large(conv)) return Support::no("needs 1 to 2^31 - 1 elements in x and y");
  if (!has_warpgroups(machine)) return Support::no("needs a GPU of compute capability 9.0");
  if (!form_of(conv).found)
    return Support::no("few channels, many taps, or beyond what the copy engine reaches");
  return Support::yes();
}

// The plan's own time, in which parts are added, and copies of what does not lie as rows.
Effort effort(const ConvPass& conv, const Machine& machine) {
  Times times(conv, machine);
  const Form form = form_of(conv);
  add_row_copies(conv, &times, form.patches);
  times.add(form.plan.microseconds * kPacedProcessors / processors_of(machine),
            form.plan.results == WeightResults::kInPlace ? 1 : 2, kBytes * bytes_of(conv));
  return times.effort();
}

std::unique_ptr<const Step> make_step(const ConvPass& conv, const Machine& /*machine*/) {
  return with_aligned_copies(conv, std::make_unique<WeightProductStep>(conv, form_of(conv)));
}

}  // namespace

const Candidate& weight_products() {
  static const ConvCandidate instance(
      {"cuda.weight_products", "grad_weight only", supports, effort, make_step});
  return instance;
}

}  // namespace retrograd::engines::cuda
