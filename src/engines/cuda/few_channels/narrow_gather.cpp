// SPDX-License-Identifier: Apache-2.0
// grad_input with up to 4 x channels a group, FP32, NCHW, in one launch.
#include "kernels/cuda/few_channels/narrow_gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;

constexpr size_t kMostShared = 96 * 1024;  // two blocks a multiprocessor

class NarrowStep final : public Step {
 public:
  explicit NarrowStep(const ConvPass& pass) : pass_(pass) {}
  std::string describe() const override { return "all channels of a place a thread"; }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    kernels::cuda::narrow_grad_input(bind(shape_of(pass_), pass_, bindings), stream_of(context));
  }

 private:
  ConvPass pass_;
};

bool is_small(const problem::Window& w) {
  for (int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo < 0 ? -w.pad_lo : w.pad_lo})
    if (size >= 1 << 24) return false;
  return (w.kernel - 1) * w.dilation < 1 << 28 && w.y * w.stride < 1 << 28;
}

class NarrowCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.narrow_gather"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != problem::ConvPassKind::kGradInput)
      return Support::no("grad_input only");
    if (conv->bias) return Support::no("adds no bias");
    if (conv->groups > 1 && conv->x_channels_per_group() == 1)
      return Support::no("one x channel a group: depthwise_windows reads less often");
    if (conv->x_channels_per_group() > kernels::cuda::kNarrowChannels)
      return Support::no(fmt::format("{} x channels a group, at most {} are taken",
                                     conv->x_channels_per_group(), kernels::cuda::kNarrowChannels));
    // Tensor cores have products to waste: 16-bit groups of 4 took 0.40 ms here, 0.22 ms in cuDNN.
    for (const problem::PassTensor* tensor : {&conv->x, &conv->y, &conv->w})
      if (tensor->dtype != DType::kF32) return Support::no("needs f32 everywhere");
    if (conv->rounding != OperandRounding::kNone) return Support::no("does not round operands");
    const auto& [d, h, w] = conv->axes;
    if (d.x != 1 || d.y != 1 || d.kernel != 1 || d.pad_lo != 0) return Support::no("one or two axes only");
    if (!is_small(h) || !is_small(w) || conv->groups > 65535 || conv->batch > 65535 ||
        !fits_31_bits(x_sizes(*conv)) || !fits_31_bits(y_sizes(*conv)))
      return Support::no("sizes beyond 32-bit counts");
    if (kernels::cuda::narrow_bytes(shape_of(*conv)) > kMostShared)
      return Support::no("the weights of a group do not fit into shared memory");
    if (!is_planes(conv->x, x_sizes(*conv)) || !is_planes(conv->y, y_sizes(*conv)))
      return Support::no("needs dense row-major x and y");
    return Support::yes();
  }
  // A thread adds one term after another.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    constexpr double kOfPeak = 0.08, kTerm = 0.065;  // kTerm: microseconds
    const auto& conv = std::get<ConvPass>(pass);
    const double operations = effort_of(pass).operations;
    double terms = static_cast<double>(conv.y_channels_per_group());
    for (const problem::Window& w : conv.axes)
      terms *= std::max(1.0, static_cast<double>(w.kernel) / static_cast<double>(w.stride));
    Times times(pass, machine);
    times.add(std::max(operations / (kOfPeak * machine.gpu.fp32_tflops * 1e6), kTerm * terms), 1,
              bytes_of(conv));
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<NarrowStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& narrow_gather() {
  static const NarrowCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
