// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions so small that launches take longer than the arithmetic: one launch a pass, two
// for grad_weight of more than a few images.
#include "kernels/cuda/small_images.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/direct.h"

namespace retrograd::engines::cuda {
namespace {

using problem::BiasPass;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kMostElements = 1 << 22;
// That a thread adds one after another, 25 to 50 ns each.
constexpr int64_t kMostTerms = 640, kMostGradInputTerms = 320;
// Microseconds, times the share in tuning/gpu.txt: a thread's term, looking at a tap, a load, a term of a
// bias.
constexpr double kTerm = 0.006, kTap = 0.001, kLoad = 0.024, kBiasTerm = 1.4e-4;
constexpr double kAtOnce = 4 * 132;         // blocks
constexpr int64_t kMostBlocks = 1024;       // a few for each multiprocessor
constexpr int64_t kFewestThreads = 32;      // of a block that have work
constexpr int64_t kTinyProducts = 1 << 16;  // so few that idle threads do not count
constexpr int64_t kBiasTerms = 2048, kBiasChannels = 1024;
constexpr size_t kSharedBytes = 48 << 10;

struct Work {
  int64_t terms, threads, blocks;
};
int64_t product(const std::array<problem::Window, 3>& axes, int64_t problem::Window::*size) {
  return axes[0].*size * (axes[1].*size) * (axes[2].*size);
}
Work work_of(const ConvPass& p) {
  const int64_t taps = product(p.axes, &problem::Window::kernel), xs = product(p.axes, &problem::Window::x),
                ys = product(p.axes, &problem::Window::y);
  const int64_t xc = p.x_channels_per_group(), yc = p.y_channels_per_group();
  if (p.kind == ConvPassKind::kGradInput)
    return {yc * taps, xs, p.batch * p.groups * ceil_div(xc, 8) * ceil_div(xs, 256)};
  const int64_t parts = kernels::cuda::small_parts(shape_of(p));
  return {ys * ceil_div(p.batch, parts), xc * taps,
          parts * p.groups * ceil_div(yc, 8) * ceil_div(xc * taps, 256)};
}

bool has_small_numbers(const ConvPass& p) {
  for (const problem::Window& a : p.axes)
    for (int64_t value :
         {a.x, a.y, a.kernel, a.stride, a.dilation, a.kernel * a.dilation, a.y * a.stride, a.pad_lo})
      if (value > kMostElements || value < -kMostElements) return false;
  return true;
}

class SmallStep final : public Step {
 public:
  explicit SmallStep(const ConvPass& pass)
      : pass_(pass),
        parts_(pass.kind == ConvPassKind::kGradWeight ? kernels::cuda::small_parts(shape_of(pass)) : 1) {}
  size_t workspace_bytes() const override {
    if (parts_ == 1) return 0;
    return static_cast<size_t>(parts_ * pass_.y_channels * pass_.x_channels_per_group() *
                               product(pass_.axes, &problem::Window::kernel)) *
           sizeof(float);
  }
  std::string describe() const override {
    return parts_ == 1 ? "images in shared memory" : fmt::format("images in shared memory, {} parts", parts_);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
    if (pass_.kind == ConvPassKind::kGradInput)
      return kernels::cuda::small_grad_input(conv, stream_of(context));
    kernels::cuda::small_grad_weight(conv, reinterpret_cast<float*>(workspace), stream_of(context));
  }

 private:
  ConvPass pass_;
  int64_t parts_;
};

class SmallBiasStep final : public Step {
 public:
  explicit SmallBiasStep(const BiasPass& pass) : pass_(pass) {}
  std::string describe() const override { return "a block a channel"; }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    kernels::cuda::direct_bias(bind(shape_of(pass_), pass_, bindings), stream_of(context));
  }

 private:
  BiasPass pass_;
};

class SmallCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.small_images"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    if (const auto* bias = std::get_if<BiasPass>(&pass)) {
      const bool few = bias->reduction_length() <= kBiasTerms && bias->channels <= kBiasChannels;
      return few ? Support::yes() : Support::no("needs at most 2048 terms and 1024 channels");
    }
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == ConvPassKind::kForward)
      return Support::no("grad_input, grad_weight and grad_bias only");
    if (conv->bias) return Support::no("adds no bias");
    for (const Sizes5& sizes : {x_sizes(*conv), y_sizes(*conv), w_sizes(*conv)})
      if (!is_small(sizes)) return Support::no("needs 1 to 2^22 elements");
    if (!has_small_numbers(*conv)) return Support::no("needs windows under 2^22");
    const Work work = work_of(*conv);
    if (work.terms > (conv->kind == ConvPassKind::kGradInput ? kMostGradInputTerms : kMostTerms))
      return Support::no("needs at most 640 terms of a weight and image, 320 of a grad_input");
    if (work.blocks > kMostBlocks) return Support::no("needs at most 1024 blocks");
    if (work.threads < kFewestThreads && work.terms * work.blocks * 8 > kTinyProducts)
      return Support::no("needs 32 results a block");
    const auto shape = shape_of(*conv);
    const size_t bytes = conv->kind == ConvPassKind::kGradInput
                             ? kernels::cuda::small_grad_input_bytes(shape)
                             : kernels::cuda::small_grad_weight_bytes(shape);
    if (bytes > kSharedBytes) return Support::no("needs images that fit into 48 KiB");
    return Support::yes();
  }
  // A block reads its images, then a thread adds one term after another.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    Times times(pass, machine);
    const auto* const conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) {
      times.add(static_cast<double>(std::get<BiasPass>(pass).reduction_length()) * kBiasTerm);
      return times.effort();
    }
    const Work work = work_of(*conv);
    const auto number = [](int64_t value) { return static_cast<double>(value); };
    double loads = number(conv->y_channels_per_group() * product(conv->axes, &problem::Window::y)),
           terms = number(work.terms);
    if (conv->kind == ConvPassKind::kGradInput) {
      for (const problem::Window& w : conv->axes)  // of the taps that are looked at, those that match
        terms *= std::min({1.0, number(w.y) / number(w.x), number(w.y) / number(w.kernel)});
      terms += number(work.terms) * (kTap / kTerm);
    } else {
      loads = std::min(8.0, number(conv->y_channels_per_group())) *
                  number(product(conv->axes, &problem::Window::y)) +
              number(conv->x_channels_per_group() * product(conv->axes, &problem::Window::x));
    }
    const bool parts =
        conv->kind == ConvPassKind::kGradWeight && kernels::cuda::small_parts(shape_of(*conv)) > 1;
    times.add(std::max(1.0, number(work.blocks) / kAtOnce) * (terms * kTerm + loads / 256 * kLoad),
              parts ? 2 : 1);
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    if (const auto* bias = std::get_if<BiasPass>(&pass)) return std::make_unique<SmallBiasStep>(*bias);
    return std::make_unique<SmallStep>(std::get<ConvPass>(pass));
  }

 private:
  static bool is_small(const Sizes5& sizes) {
    Checked count = 1;
    for (int64_t size : sizes) count = count * size;
    const auto elements = count.get();
    return elements && *elements > 0 && *elements <= kMostElements;
  }
};

}  // namespace

const Candidate& small_images() {
  static const SmallCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
