// SPDX-License-Identifier: Apache-2.0
// What a process keeps between calls. A forked child begins anew: handles of plans are dead there, mutexes
// may be held by threads that it does not have, and the library's loops are back on a pool of its own.
#pragma once

#include "plan_cache.h"
#include "workspaces.h"

namespace retrograd_torch {

struct ProcessState {
  PlanCache plans{4096};
  Workspaces workspaces{size_t{512} << 20};
};

// Made at first use, in every process, and never destroyed.
ProcessState& process_state();

// The library's CPU loops run on PyTorch's threads from now on, in forked children too, or no longer. A
// sentence when the library refuses, otherwise null.
const char* loops_on_torch_threads(bool wanted);

}  // namespace retrograd_torch
