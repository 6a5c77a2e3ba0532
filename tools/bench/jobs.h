// SPDX-License-Identifier: Apache-2.0
// What a command line asks `retrograd bench` to time: a problem and the gradients that are asked for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace retrograd::tools {

struct BenchJob {
  std::string name;
  Gradient gradient;
  problem::Request request;
};

// One for each problem and gradient; `otherwise` where the options name no problem.
Result<std::vector<BenchJob>> bench_jobs(const BenchOptions& options, std::span<const char* const> otherwise);

}  // namespace retrograd::tools
