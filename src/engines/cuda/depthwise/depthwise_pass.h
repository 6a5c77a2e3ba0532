// SPDX-License-Identifier: Apache-2.0
// What the engines for depthwise convolutions ask of a pass first.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/candidate.h"

namespace retrograd::engines::cuda {

// FP32, FP16 or BF16 throughout, no rounding of operands, one channel a group of one side, and up to `most`
// of the other.
inline Support is_depthwise(const ConvPass& pass, int64_t most = 1) {
  const int64_t xs = pass.x_channels_per_group(), ys = pass.y_channels_per_group();
  if (most == 1 && std::max(xs, ys) != 1) return Support::no("needs one channel a group on both sides");
  if (std::min(xs, ys) != 1 || std::max(xs, ys) > most)
    return Support::no("needs one channel of one side and at most 4 of the other a group");
  if (!has_one_wide_type(pass)) return Support::no("needs f32, f16 or bf16, all the same");
  if (pass.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  return Support::yes();
}

// A kernel for each alignment of x and y, and in how many parts each cuts a grad_weight at most.
template <class Kernel>
struct AlignedKernels {
  ByAlignment<Kernel> kernels;
  int64_t parts = 0;

  template <class Choose>
  explicit AlignedKernels(const Choose& choose) : kernels(choose) {}
  template <class PartsOf>
  void set_parts(const PartsOf& parts_of) {
    for (const Kernel kernel : kernels.all()) parts = std::max(parts, parts_of(kernel));
  }
  int64_t sums(const ConvPass& pass) const {
    return parts * pass.groups * pass.axes[1].kernel * pass.axes[2].kernel;
  }
  std::string describe(const ConvPass& pass) const {
    const std::string names = kernels.describe(size_of(pass.x.dtype));
    return parts == 0 ? names : fmt::format("{}, up to {} parts a channel", names, parts);
  }
  Kernel of(const Conv& conv) const {
    return kernels.at(kernels::cuda::alignment_of({conv.x.data, conv.y.data}));
  }
};

template <class GatherStep, class WeightStep>
std::unique_ptr<const Step> make_gather_or_weight(const ConvPass& pass, const Machine& machine) {
  if (is_grad_weight(pass)) return std::make_unique<WeightStep>(pass, machine);
  return std::make_unique<GatherStep>(pass, machine);
}

}  // namespace retrograd::engines::cuda
