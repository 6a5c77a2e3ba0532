// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program. Each takes the arguments behind its name and returns the exit code.
#pragma once

#include <span>
#include <string_view>

namespace retrograd::tools {

using Arguments = std::span<const std::string_view>;

// 0: legal; 1: refused, with the reason on stderr; 2: the command line is wrong.
int explain(Arguments arguments);
int bench(Arguments arguments);

}  // namespace retrograd::tools
