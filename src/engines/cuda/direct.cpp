// SPDX-License-Identifier: Apache-2.0
// Every pass with any strides, sizes and types, straight from its formula (kernels/cuda/direct.h): one launch
// a pass.
#include "kernels/cuda/direct.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
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

// Fitted to an H200, terms twice as slow as in the mean. A thread adds the terms of a result one after
// another, which it waits for (kDepth) and which all of them share the machine for (kTerm). The terms of a
// weight or of a bias are shared by a block.
constexpr double kDepth = 0.12, kTerm = 1.1e-6, kResult = 42e-6, kWeight = 0.0045, kSharedTerm = 0.3,
                 kBlock = 128, kPooled = 25e-6;

double number(int64_t value) { return static_cast<double>(value); }

double microseconds_of(const problem::ConvPass& p) {
  double places = number(p.batch), taps = 1, x = number(p.batch);
  for (const problem::Window& w : p.axes) {
    places *= number(w.y);
    x *= number(w.x);
    taps *= number(w.kernel);
  }
  if (p.kind == ConvPassKind::kGradWeight) {
    const double weights = number(p.y_channels) * number(p.x_channels_per_group()) * taps;
    return std::max(kWeight * weights, kSharedTerm) * std::ceil(places / kBlock);
  }
  const double results =
      p.kind == ConvPassKind::kForward ? places * number(p.y_channels) : x * number(p.x_channels);
  const double terms = live_terms(p);
  return kDepth * terms / std::max(results, 1.0) + kTerm * terms + kResult * results;
}
double microseconds_of(const problem::BiasPass& p) {
  return std::max(kWeight * number(p.channels), kSharedTerm) *
         std::ceil(number(p.reduction_length()) / kBlock);
}
double microseconds_of(const problem::AvgPoolPass& p) { return kPooled * effort_of(p).operations; }

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
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    constexpr double kTimesRead = 4;
    Times times(pass, machine);
    times.add(std::visit([](const auto& p) { return microseconds_of(p); }, pass), 1,
              kTimesRead * effort_of(pass).bytes);
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
