// SPDX-License-Identifier: Apache-2.0
// grad_bias in two launches (kernels/cuda/bias): partial sums of each channel, then their sum.
#include "kernels/cuda/bias/bias.h"

#include <fmt/format.h>

#include "engines/cuda/candidate.h"

namespace retrograd::engines::cuda {
namespace {

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

struct PartSums {
  struct Plan {
    bool planes;
    kernels::cuda::BiasCut cut;
  };
  static Plan plan(const BiasPass& pass) {
    return {is_summed_by_planes(pass), kernels::cuda::bias_cut(shape_of(pass))};
  }
  static int64_t sums(const BiasPass& pass, const Plan& plan) { return plan.cut.sums() * pass.channels; }
  static std::string describe(const BiasPass& /*pass*/, const Plan& plan) {
    const auto& [planes, cut] = plan;
    return fmt::format("{}{}, {} parts a channel", planes ? "planes" : "channels last",
                       cut.rows > 1 ? fmt::format(", {} rows as one", cut.rows) : "", cut.parts);
  }
  static void launch(const BiasPass& /*pass*/, const kernels::cuda::Bias& bias, const Plan& plan, float* sums,
                     Stream stream) {
    plan.planes ? kernels::cuda::bias_planes(bias, sums, stream)
                : kernels::cuda::bias_channels_last(bias, sums, stream);
  }
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
      {"cuda.bias", "grad_bias only", supports, effort, make_step<PlannedStep<PartSums>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
