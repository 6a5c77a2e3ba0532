// SPDX-License-Identifier: Apache-2.0
// The bias of a forward problem as the initial value of each channel's sums, so that adding it needs no pass
// of its own.
#pragma once

#include "engines/cpu/rows.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// The bias of `count` channels from `first` on, in `out`; null where the pass adds none.
inline const float* load_bias(const problem::ConvPass& pass, const Bindings& bindings, int64_t first,
                              int64_t count, float* out) {
  if (!pass.bias) return nullptr;
  const auto& [operand, dtype, strides] = *pass.bias;
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  load_row(dtype, OperandRounding::kNone,
           static_cast<const std::byte*>(bindings[operand]) + first * strides[1] * bytes, strides[1], count,
           out);
  return out;
}

// Floats that load_bias() writes for so many channels.
inline int64_t bias_floats(const problem::ConvPass& pass, int64_t count) { return pass.bias ? count : 0; }

}  // namespace retrograd::engines::cpu
