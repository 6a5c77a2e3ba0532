// SPDX-License-Identifier: Apache-2.0
// The taps of one pair of channels in the weight, as FP32 side by side.
#pragma once

#include <cstdint>

#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

inline int64_t taps_of(const problem::ConvPass& p) {
  return p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
}
// Whether one of them reads padding alone.
bool has_dead_taps(const problem::ConvPass& pass);
// Whether they lie side by side in memory, and whether they do at some stride.
bool taps_follow_each_other(const problem::ConvPass& pass);
bool taps_are_one_run(const problem::ConvPass& pass);

// Those of y channel `y` and of x channel `x` of its group.
void load_taps(const problem::ConvPass& pass, const Bindings& bindings, int64_t y, int64_t x, float* out);
void store_taps(const problem::ConvPass& pass, const Bindings& bindings, int64_t y, int64_t x,
                const float* taps);

}  // namespace retrograd::engines::cpu
