// SPDX-License-Identifier: Apache-2.0
// What the engines for depthwise convolutions ask of a pass first.
#pragma once

#include <algorithm>

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

// FP32, FP16 or BF16 throughout, no rounding of operands, one channel a group of one side, and up to `most`
// of the other.
inline Support is_depthwise(const problem::ConvPass& pass, int64_t most = 1) {
  const int64_t xs = pass.x_channels_per_group(), ys = pass.y_channels_per_group();
  if (most == 1 && std::max(xs, ys) != 1) return Support::no("needs one channel a group on both sides");
  if (std::min(xs, ys) != 1 || std::max(xs, ys) > most)
    return Support::no("needs one channel of one side and at most 4 of the other a group");
  if (!has_one_wide_type(pass)) return Support::no("needs f32, f16 or bf16, all the same");
  if (pass.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  return Support::yes();
}

template <class GatherStep, class WeightStep>
std::unique_ptr<const Step> make_gather_or_weight(const problem::ConvPass& pass, const Machine& /*machine*/) {
  if (pass.kind == problem::ConvPassKind::kGradWeight) return std::make_unique<WeightStep>(pass);
  return std::make_unique<GatherStep>(pass);
}

}  // namespace retrograd::engines::cuda
