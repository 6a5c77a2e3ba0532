// SPDX-License-Identifier: Apache-2.0
// What the engines for depthwise convolutions ask of a pass first.
#pragma once

#include <algorithm>

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

// FP32, FP16 or BF16 throughout, no rounding of operands, one channel a group of one side, and up to `most`
// of the other.
inline Support is_depthwise(const problem::ConvPass* pass, int64_t most = 1) {
  if (pass == nullptr) return Support::no("convolutions only");
  const int64_t xs = pass->x_channels_per_group(), ys = pass->y_channels_per_group();
  if (most == 1 && std::max(xs, ys) != 1) return Support::no("needs one channel a group on both sides");
  if (std::min(xs, ys) != 1 || std::max(xs, ys) > most)
    return Support::no("needs one channel of one side and at most 4 of the other a group");
  if (!has_one_wide_type(*pass)) return Support::no("needs f32, f16 or bf16, all the same");
  if (pass->rounding != OperandRounding::kNone) return Support::no("does not round operands");
  return Support::yes();
}

}  // namespace retrograd::engines::cuda
