// SPDX-License-Identifier: Apache-2.0
// One launch a pass.
#include "kernels/cuda/direct.h"

#include "engines/cuda/implementations.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPassKind;

void launch(const problem::ConvPass& pass, const Bindings& bindings, kernels::cuda::Stream stream) {
  const kernels::cuda::Conv conv = bind(shape_of(pass), pass, bindings);
  switch (pass.kind) {
    case ConvPassKind::kForward:
      return kernels::cuda::direct_forward(conv, stream);
    case ConvPassKind::kGradInput:
      return kernels::cuda::direct_grad_input(conv, stream);
    case ConvPassKind::kGradWeight:
      return kernels::cuda::direct_grad_weight(conv, stream);
  }
}
void launch(const problem::BiasPass& pass, const Bindings& bindings, kernels::cuda::Stream stream) {
  kernels::cuda::direct_bias(bind(shape_of(pass), pass, bindings), stream);
}
void launch(const problem::AvgPoolPass& pass, const Bindings& bindings, kernels::cuda::Stream stream) {
  kernels::cuda::direct_pool(bind(shape_of(pass), pass, bindings), stream);
}

class DirectStep final : public Step {
 public:
  explicit DirectStep(const problem::Pass& pass) : pass_(pass) {}
  std::string describe() const override { return "one element after another, sums in FP32"; }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    std::visit([&](const auto& pass) { launch(pass, bindings, stream_of(context)); }, pass_);
  }

 private:
  problem::Pass pass_;
};

class DirectCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.direct"; }
  Support supports(const problem::Pass&, const Machine& /*machine*/) const override { return Support::yes(); }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<DirectStep>(pass);
  }
};

}  // namespace

const Candidate& direct() {
  static const DirectCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
