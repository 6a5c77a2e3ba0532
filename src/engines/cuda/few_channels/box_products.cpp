// SPDX-License-Identifier: Apache-2.0
// forward with up to 16 x channels a group on tensor cores, any window and strides, in one launch
// (kernels/cuda/stems/box_plan.h).
#include <fmt/format.h>

#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/stems/box_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::BoxPlan;
using problem::ConvPass;

constexpr int64_t kMostChannels = 16, kMostTerms = 4096;
constexpr int64_t kMostGrid = 65535;

class BoxStep final : public Step {
 public:
  explicit BoxStep(const ConvPass& pass) : pass_(pass), plan_(kernels::cuda::box_plan(shape_of(pass))) {}
  std::string describe() const override {
    const auto& p = plan_.product;
    return fmt::format("boxes of {} x {} x {} places by {} channels, {} a block, {} terms, {} bytes",
                       p.d.places, p.h.places, p.w.places, p.columns, p.rounds, p.terms, plan_.shared);
  }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::box_products(bind(pass_, bindings), plan_, stream_of(context));
  }

 private:
  ConvPass pass_;
  BoxPlan plan_;
};

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.kind != problem::ConvPassKind::kForward) return Support::no("forward only");
  const int64_t channels = conv.x_channels_per_group();
  if (channels > kMostChannels)
    return Support::no("{} x channels a group, at most {} are taken", channels, kMostChannels);
  if (!has_one_wide_type(conv)) return Support::no("needs f32, f16 or bf16, all the same");
  if (conv.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  if (!fits_31_bits(x_sizes(conv)) || !fits_31_bits(y_sizes(conv)) || !fits_31_bits(w_sizes(conv)) ||
      !has_small_windows(conv) || !are_weights_near(conv))
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
      {"cuda.box_products", "forward only", supports, effort, make_step<BoxStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
