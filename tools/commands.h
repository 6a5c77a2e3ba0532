// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program: their options, as main.cpp fills them in from the command line. Each
// returns the exit code: 0 all is well, 1 a problem was refused or failed, 2 the command line or a file is
// wrong.
#pragma once

#include <string>
#include <vector>

#include "tools/problems.h"

namespace retrograd::tools {

struct BenchOptions {
  ProblemSource problems;  // none: a short list of our own
  std::vector<std::string> passes{"all"};
  double seconds = 0.5;  // a row, for us and for each peer
  bool first_call = false;
  std::vector<std::string> peers;  // commands
  std::string json, csv;           // files to write
};
int bench(const BenchOptions& options);

int explain(const std::string& text);

}  // namespace retrograd::tools
