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

// What the choice between the two depends on.
struct Facts {
  retrogradDeviceType_t device = RETROGRAD_CPU;
  retrogradDtype_t dtype = RETROGRAD_F32;
  int64_t groups = 1;
  bool windows_overlap = false;
  double our_microseconds = 0;
  bool widened = false;  // our plan multiplies BF16 in FP32 on a processor that could multiply pairs
};

bool stock_is_faster(const Facts& facts);

// Ours, or the reason why not.
Outcome outcome_of(const Entry& entry);

}  // namespace retrograd_torch
