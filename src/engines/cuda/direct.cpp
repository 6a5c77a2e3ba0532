// SPDX-License-Identifier: Apache-2.0
// Every pass with any strides, sizes and types, straight from its formula (kernels/cuda/direct.h): one launch
// a pass.

#include "kernels/cuda/direct.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "engines/cuda/candidate.h"

namespace retrograd::engines::cuda {
namespace {

void launch(const ConvPass& pass, const Bindings& bindings, Stream stream) {
  run_directly(pass.kind, bind(pass, bindings), stream);
}
void launch(const BiasPass& pass, const Bindings& bindings, Stream stream) {
  kernels::cuda::direct_bias(bind(pass, bindings), stream);
}
void launch(const AvgPoolPass& pass, const Bindings& bindings, Stream stream) {
  const kernels::cuda::Pool pool = bind(pass, bindings);
  pass.forward ? kernels::cuda::direct_pool_forward(pool, stream) : kernels::cuda::direct_pool(pool, stream);
}

// Microseconds, fitted to 517 passes of an H200. forward, grad_input: a thread finds its result by divisions
// (kStart), then adds its terms one after another; those with most terms end last (kDepth), and all share the
// machine (kTerm, kResult). grad_weight, grad_bias: a block adds the terms of a result, 128 at a time
// (kBlock).
constexpr double kStart = 3.2, kDepth = 0.12, kTerm = 2.8e-6, kResult = 230e-6, kWeight = 0.015,
                 kWeightTerm = 0.8e-3, kSharedTerm = 0.13, kBlock = 128, kBiasTurn = 0.46,
                 kBiasChannel = 0.3e-3, kPooled = 25e-6, kPoolDepth = 0.2;

double number(int64_t value) { return static_cast<double>(value); }

// The most taps that one result adds.
double longest_sum(const Window& w, ConvPassKind kind) {
  if (kind == ConvPassKind::kForward) return number(std::min(w.kernel, ceil_div(w.x, w.dilation)));
  // The taps of a place in x are `step` apart, and read outputs that are `outputs` apart.
  const int64_t common = std::gcd(w.stride, w.dilation);
  const int64_t step = w.stride / common, outputs = w.dilation / common;
  return number(std::min(ceil_div(w.kernel, step), ceil_div(w.y, outputs)));
}

double microseconds_of(const ConvPass& p) {
  double places = number(p.batch), taps = 1, x = number(p.batch), depth = 1;
  for (const Window& w : p.axes) {
    places *= number(w.y);
    x *= number(w.x);
    taps *= number(w.kernel);
    depth *= longest_sum(w, p.kind);
  }
  if (is_grad_weight(p)) {
    const double weights = number(p.y_channels) * number(p.x_channels_per_group()) * taps;
    return kWeight * weights + (kWeightTerm * weights + kSharedTerm) * std::ceil(places / kBlock);
  }
  const bool forward = is_forward(p);
  depth *= number(forward ? p.x_channels_per_group() : p.y_channels_per_group());
  const double results = forward ? places * number(p.y_channels) : x * number(p.x_channels);
  return kStart + kDepth * depth + kTerm * live_terms(p) + kResult * results;
}
double microseconds_of(const BiasPass& p) {
  return (kBiasTurn + kBiasChannel * number(p.channels)) * std::ceil(number(p.reduction_length()) / kBlock);
}
double microseconds_of(const AvgPoolPass& p) {
  double longest = 1;
  for (const problem::PoolWindow& w : p.axes)
    longest *= number(p.forward ? std::min(w.kernel, w.x) : std::min(ceil_div(w.kernel, w.stride), w.y));
  return kPooled * effort_of(p).operations + kPoolDepth * longest;
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

void run_directly(ConvPassKind kind, const Conv& conv, Stream stream) {
  switch (kind) {
    case ConvPassKind::kForward:
      return kernels::cuda::direct_forward(conv, stream);
    case ConvPassKind::kGradInput:
      return kernels::cuda::direct_grad_input(conv, stream);
    case ConvPassKind::kGradWeight:
      return kernels::cuda::direct_grad_weight(conv, stream);
  }
}

const Candidate& direct() {
  static const DirectCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
