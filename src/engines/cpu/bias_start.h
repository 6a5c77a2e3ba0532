// SPDX-License-Identifier: Apache-2.0
// The bias of a forward problem as the initial value of each channel's sums, so that adding it needs no pass
// of its own.
#pragma once

#include <algorithm>
#include <cmath>

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

// Products of cells take sums that are too small for zeros, so a bias must be none of those.
inline bool cells_may_begin_with(const float* bias, int64_t count) {
  constexpr float kSmallest = 0x1p-100F;
  return std::all_of(bias, bias + count, [](float b) { return b == 0 || !(std::abs(b) < kSmallest); });
}

// Floats that load_bias() writes for so many channels.
inline int64_t bias_floats(const problem::ConvPass& pass, int64_t count) { return pass.bias ? count : 0; }

}  // namespace retrograd::engines::cpu
