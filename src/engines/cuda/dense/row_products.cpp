// SPDX-License-Identifier: Apache-2.0
// Any convolution as matrix products over rows of channels (NHWC, padded): which passes are taken, at what
// cost.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/dense/row_steps.h"
#include "engines/cuda/implementations.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kFewestChannels = 16;  // of a group in TF32

class RowProductsCandidate final : public Candidate {
 public:
  explicit RowProductsCandidate(bool in_tf32) : in_tf32_(in_tf32) {}
  const char* name() const override { return in_tf32_ ? "cuda.tf32_products" : "cuda.row_products"; }
  bool reduces_precision() const override { return in_tf32_; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    if (const Support support = takes_products(*conv); !support.accepted()) return support;
    if (in_tf32_ && (!conv->hf32_allowed || row_type_of(*conv) != RowType::kF32))
      return Support::no("f32 operands must not be rounded, or are not there");
    if (in_tf32_ && conv->groups > 1 &&
        std::min(conv->x_channels_per_group(), conv->y_channels_per_group()) < kFewestChannels)
      return Support::no(fmt::format("groups of fewer than {} channels fill few tiles", kFewestChannels));
    if (!in_tf32_ && row_type_of(*conv) == RowType::kF32)
      if (const Support support = takes_split_products(terms_of(*conv)); !support.accepted()) return support;
    if (conv->kind == ConvPassKind::kGradInput && !has_gather_way(*conv))
      return Support::no("more than 64 residues of the strides, with windows that overlap");
    return Support::yes();
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return row_effort(pass, in_tf32_, machine);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return make_row_step(std::get<ConvPass>(pass), in_tf32_, machine);
  }

 private:
  bool in_tf32_;
};

}  // namespace

const Candidate& row_products() {
  static const RowProductsCandidate instance(false);
  return instance;
}
const Candidate& tf32_products() {
  static const RowProductsCandidate instance(true);
  return instance;
}

}  // namespace retrograd::engines::cuda
