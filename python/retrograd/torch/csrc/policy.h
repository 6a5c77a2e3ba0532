// SPDX-License-Identifier: Apache-2.0
// Which calls are ours.
#pragma once

#include <cstdint>

#include "counters.h"
#include "plan_cache.h"
#include "retrograd/retrograd.h"

namespace retrograd_torch {

enum class Policy { kAuto, kAlways, kDepthwise };

void set_policy(Policy policy);
Policy policy();

// What the choice between the two depends on. Sizes of a convolution are those of its forward pass; a
// transposed one is seen as the gradient of an ordinary one, so that its output is the wide side.
struct Facts {
  Op op = Op::kConvolutionBackward;
  retrogradDeviceType_t device = RETROGRAD_CPU;
  retrogradDtype_t dtype = RETROGRAD_F32;
  int spatial_rank = 2;
  bool channels_last = false;
  int64_t c_in = 1, c_out = 1, groups = 1;
  int64_t wide_places = 1, narrow_places = 1;  // positions of an image's input and output
  int64_t taps = 1;
  double our_microseconds = 0;
  bool widened = false;  // our plan multiplies BF16 in FP32 on a processor that could multiply pairs
};

bool stock_is_faster(const Facts& facts);

// Ours, or the reason why not.
Outcome outcome_of(const Entry& entry);

}  // namespace retrograd_torch
