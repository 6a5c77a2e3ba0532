// SPDX-License-Identifier: Apache-2.0
// grad_bias in two launches (kernels/cuda/bias): partial sums of each channel, then their sum.
#include "kernels/cuda/bias/bias.h"

#include <fmt/format.h>

#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"

namespace retrograd::engines::cuda {
namespace {

using problem::BiasPass;

// Places side by side; images and channels anywhere: a slice of channels, one image for all.
bool has_planes(const BiasPass& p) {
  const problem::Strides5& strides = p.grad_output.strides;
  int64_t stride = 1;
  for (size_t i = 3; i-- > 0; stride *= p.spatial[i])
    if (p.spatial[i] != 1 && strides[i + 2] != stride) return false;
  return strides[0] >= 0 && strides[1] >= 0;
}

bool is_summed_by_planes(const BiasPass& p) {
  return has_planes(p) && (p.channels == 1 || !is_channels_last(p.grad_output, sizes_of(p)));
}

class BiasStep final : public Step {
 public:
  explicit BiasStep(const BiasPass& pass)
      : pass_(pass), planes_(is_summed_by_planes(pass)), cut_(kernels::cuda::bias_cut(shape_of(pass))) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(cut_.sums() * pass_.channels) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("{}{}, {} parts a channel", planes_ ? "planes" : "channels last",
                       cut_.rows > 1 ? fmt::format(", {} rows as one", cut_.rows) : "", cut_.parts);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Bias bias = bind(pass_, bindings);
    auto* sums = reinterpret_cast<float*>(workspace);
    planes_ ? kernels::cuda::bias_planes(bias, sums, stream_of(context))
            : kernels::cuda::bias_channels_last(bias, sums, stream_of(context));
  }

 private:
  BiasPass pass_;
  bool planes_;
  kernels::cuda::BiasCut cut_;
};

Support supports(const BiasPass& bias, const Machine& /*machine*/) {
  if (!is_wide_type(bias.grad_output.dtype)) return Support::no("needs f32, f16 or bf16");
  if (!fits_31_bits(sizes_of(bias))) return Support::no("needs 1 to 2^31 - 1 elements");
  if (!has_planes(bias) && !is_channels_last(bias.grad_output, sizes_of(bias)))
    return Support::no("needs a grad_output whose places lie side by side, or dense channels last");
  return Support::yes();
}

// Parts of channels last take a launch of their own; those of planes hide behind each other.
Effort effort(const BiasPass& bias, const Machine& /*machine*/) {
  Effort effort = effort_of(bias);
  if (!is_summed_by_planes(bias) && kernels::cuda::bias_cut(shape_of(bias)).sums() > 1) effort.launches = 2;
  return effort;
}

}  // namespace

const Candidate& bias() {
  static const PassCandidate<BiasPass> instance(
      {"cuda.bias", "grad_bias only", supports, effort, make_step<BiasStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
