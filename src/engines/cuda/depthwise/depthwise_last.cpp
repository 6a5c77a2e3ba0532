// SPDX-License-Identifier: Apache-2.0
// grad_input in one launch, grad_weight in two.
#include "kernels/cuda/depthwise_nhwc/depthwise_last.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/depthwise/depthwise.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/direct.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::LastKernel;
using problem::ConvPass;
using problem::ConvPassKind;

class LastStep final : public Step {
 public:
  explicit LastStep(const ConvPass& pass)
      : pass_(pass),
        kernels_([&](int alignment) { return kernels::cuda::last_kernel(shape_of(pass), alignment); }) {
    if (pass.kind == ConvPassKind::kGradInput) return;
    for (const LastKernel kernel : kernels_.all())
      parts_ = std::max(parts_, kernels::cuda::depthwise_last_parts(shape_of(pass), kernel));
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(parts_ * pass_.groups * pass_.axes[1].kernel * pass_.axes[2].kernel) *
           sizeof(float);
  }
  std::string describe() const override {
    const std::string names = kernels_.describe(size_of(pass_.x.dtype));
    return parts_ == 0 ? names : fmt::format("{}, up to {} parts", names, parts_);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
    const auto stream = stream_of(context);
    const bool is_x = pass_.kind == ConvPassKind::kGradInput;
    const LastKernel kernel = kernels_.at(kernels::cuda::alignment_of({conv.x.data, conv.y.data}));
    if (kernel == LastKernel::kDirect)
      return is_x ? kernels::cuda::direct_grad_input(conv, stream)
                  : kernels::cuda::direct_grad_weight(conv, stream);
    if (is_x) return kernels::cuda::depthwise_last_grad_input(conv, kernel, stream);
    kernels::cuda::depthwise_last_grad_weight(conv, kernel, reinterpret_cast<float*>(workspace), stream);
  }

 private:
  ConvPass pass_;
  ByAlignment<LastKernel> kernels_;
  int64_t parts_ = 0;
};

class LastCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.depthwise_last"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (const Support square = is_small_square(conv); !square.accepted()) return square;
    if (conv->groups % 2 != 0) return Support::no("needs an even number of channels");
    if (conv->groups > kMostChannels) return Support::no("needs at most 2^20 channels");
    if (!is_channels_last(conv->x, x_sizes(*conv)) || !is_channels_last(conv->y, y_sizes(*conv)))
      return Support::no("needs channels-last x and y");
    return Support::yes();
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return on_fp32_units(effort_of(pass), pass, machine);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<LastStep>(std::get<ConvPass>(pass));
  }

 private:
  static constexpr int64_t kMostChannels = 1 << 20;  // blocks side by side are counted in 16 bits
};

}  // namespace

const Candidate& depthwise_last() {
  static const LastCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
