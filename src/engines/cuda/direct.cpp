// SPDX-License-Identifier: Apache-2.0
// One launch a pass.
#include "kernels/cuda/direct.h"

#include <algorithm>

#include "engines/cuda/effort.h"
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
  const kernels::cuda::Pool pool = bind(shape_of(pass), pass, bindings);
  pass.forward ? kernels::cuda::direct_pool_forward(pool, stream) : kernels::cuda::direct_pool(pool, stream);
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
  // 0.1 % of the peak of FP32, and at least as long as a thread adds terms one after another; those of a
  // weight are shared by a block.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    constexpr double kOfPeak = 0.001, kTerm = 0.06, kThreads = 128, kTimesRead = 4;
    const double operations = effort_of(pass).operations;
    double microseconds = operations / (kOfPeak * machine.gpu.fp32_tflops * 1e6);
    if (const auto* conv = std::get_if<problem::ConvPass>(&pass)) {
      const bool weight = conv->kind == ConvPassKind::kGradWeight;
      const Sizes5 sizes = weight                                 ? w_sizes(*conv)
                           : conv->kind == ConvPassKind::kForward ? y_sizes(*conv)
                                                                  : x_sizes(*conv);
      const double terms =
          operations / 2 /
          std::max(1.0, bytes_of(conv->result(), sizes) / static_cast<double>(size_of(conv->result().dtype)));
      microseconds = std::max(microseconds, kTerm * (weight ? terms / kThreads : terms));
    }
    Times times(pass, machine);
    times.add(microseconds, 1, kTimesRead * effort_of(pass).bytes);
    return times.effort();
  }
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
