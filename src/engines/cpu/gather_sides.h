// SPDX-License-Identifier: Apache-2.0
// The two sides of a gathering pass: forward reads x and makes y, grad_input the reverse. Channels are those
// of one group.
#pragma once

#include "base/checked.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

inline bool is_forward(const problem::ConvPass& p) { return p.kind == problem::ConvPassKind::kForward; }

inline const problem::PassTensor& source_of(const problem::ConvPass& p) { return is_forward(p) ? p.x : p.y; }

inline int64_t source_channels(const problem::ConvPass& p) {
  return is_forward(p) ? p.x_channels_per_group() : p.y_channels_per_group();
}

inline int64_t result_channels(const problem::ConvPass& p) {
  return is_forward(p) ? p.y_channels_per_group() : p.x_channels_per_group();
}

// Products of one result; a phase has its share of the taps.
inline int64_t terms_of(const problem::ConvPass& p) {
  int64_t terms = source_channels(p);
  for (const problem::Window& w : p.axes) terms *= is_forward(p) ? w.kernel : ceil_div(w.kernel, w.stride);
  return terms;
}

}  // namespace retrograd::engines::cpu
