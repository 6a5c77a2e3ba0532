// SPDX-License-Identifier: Apache-2.0
// Runs environment_probe under given variables and returns what it wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace retrograd::test {

struct ProbeResult {
  int exit_code;
  std::vector<std::string> lines;  // stdout and stderr together
};

// RETROGRAD_ variables that are not named are not set.
ProbeResult run_probe(const std::string& mode, const std::map<std::string, std::string>& variables);

}  // namespace retrograd::test
