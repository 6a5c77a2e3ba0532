// SPDX-License-Identifier: Apache-2.0
// How a problem would be computed, in words: what `retrograd explain` and retrogradExplain print.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/machine.h"
#include "base/status.h"
#include "engines/engine.h"
#include "problem/problem.h"
#include "runtime/device.h"

namespace retrograd::plan {

struct Explanation {
  std::string text;  // whole lines
  size_t workspace_bytes = 0;
  std::unique_ptr<const engines::Step> step;  // of the (last) pass
};

// Every candidate for this kind of pass, the cheapest first: that one computes it. `before`: the step of the
// call's pass before, whose conversions this one may read; null: there is none.
Explanation explain_pass(const problem::Pass& pass, runtime::DeviceKind kind, const Machine& machine,
                         const engines::Step* before);

// All of one problem on a device: its text, warnings, passes, the device, the workspace.
Result<Explanation> explain(const problem::Problem& problem, runtime::Device& device);

// "cpu:0, AVX3_ZEN4: 2 threads, vectors of 16 floats, …"
std::string describe(const runtime::Device& device);

}  // namespace retrograd::plan
