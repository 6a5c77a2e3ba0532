// SPDX-License-Identifier: Apache-2.0
// forward and grad_input of groups of 8 to 32 channels in NHWC: several groups a block, one launch.
#include "kernels/cuda/few_channels/group_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/direct.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GroupRows;
using kernels::cuda::is_aligned;
using problem::ConvPass;
using problem::ConvPassKind;

// Microseconds of a multiprocessor: of a tile of 64 places, of its taps, and of eights of channels.
constexpr double kTile = 0.15, kTap = 0.1, kEight = 0.015;
constexpr double kEnds = 4;  // of the first and last tiles

bool is_forward(const ConvPass& p) { return p.kind == ConvPassKind::kForward; }

class GroupRowsStep final : public Step {
 public:
  explicit GroupRowsStep(const ConvPass& pass)
      : pass_(pass),
        plan_(kernels::cuda::group_rows_plan(shape_of(pass), is_forward(pass))),
        residues_(product_axes(pass)) {
    product_.conv = shape_of(pass);
    product_.forward = is_forward(pass);
    product_.math =
        pass.w.dtype == DType::kF16 ? kernels::cuda::ProductMath::kF16 : kernels::cuda::ProductMath::kBF16;
    product_.padded = std::any_of(residues_.begin(), residues_.end(),
                                  [](const ProductAxes& axes) { return leaves_source(axes); });
  }
  std::string describe() const override {
    return fmt::format("{} groups a block, {} residue{}", plan_.groups, residues_.size(),
                       residues_.size() == 1 ? "" : "s");
  }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::GatherProduct product = product_;
    product.conv = bind(product.conv, pass_, bindings);
    if (is_aligned(product.conv.x.data) && is_aligned(product.conv.y.data))
      return kernels::cuda::group_rows(product, plan_, residues_, stream_of(context));
    run_directly(pass_.kind, product.conv, stream_of(context));
  }

 private:
  ConvPass pass_;
  GroupRows plan_;
  std::vector<ProductAxes> residues_;
  kernels::cuda::GatherProduct product_{};  // without addresses
};

Support takes(const ConvPass& p) {
  if (p.kind == ConvPassKind::kGradWeight) return Support::no("forward and grad_input only");
  if (const Support support = takes_products(p); !support.accepted()) return support;
  if (!has_one_wide_type(p) || p.w.dtype == DType::kF32)
    return Support::no("needs tensors of one type, f16 or bf16");
  if (!is_channels_last(p.x, x_sizes(p)) || !is_channels_last(p.y, y_sizes(p)))
    return Support::no("needs channels last");
  if (kernels::cuda::group_rows_plan(shape_of(p), is_forward(p)).groups == 0)
    return Support::no("needs groups of 8, 16, 24 or 32 channels and few taps");
  if (!is_few_residues(p)) return Support::no("more than 64 residues of the strides");
  return Support::yes();
}

class GroupRowsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.group_rows"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    return takes(*conv);
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& p = std::get<ConvPass>(pass);
    const GroupRows plan = kernels::cuda::group_rows_plan(shape_of(p), is_forward(p));
    const std::vector<ProductAxes> residues = product_axes(p);
    const double eights = plan.groups * plan.terms, products = eights * plan.columns;
    double microseconds = 0;
    for (const ProductAxes& axes : residues) {
      double taps = 1;
      for (const kernels::cuda::ProductAxis& axis : axes) taps *= static_cast<double>(axis.taps);
      microseconds +=
          static_cast<double>(ceil_div(places_of(p, axes), int64_t{64}) * plan.slabs) *
          (kTile + plan.groups * plan.columns * kEight + taps * (kTap + (eights + products) * kEight));
    }
    Times times(pass, machine);
    times.add(microseconds / processors_of(machine),
              static_cast<double>(
                  ceil_div(static_cast<int64_t>(residues.size()), int64_t{kernels::cuda::kMostResidues})),
              bytes_of(p));
    times.add(kEnds, 0);
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<GroupRowsStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& group_rows() {
  static const GroupRowsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
