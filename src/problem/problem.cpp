// SPDX-License-Identifier: Apache-2.0
// Judging a request of any kind.
#include "problem/problem.h"

#include <fmt/format.h>

#include "problem/problem_text.h"

namespace retrograd::problem {

Result<Problem> judge(const Request& request) {
  auto problem = std::visit([](const auto& asked) { return make_problem(asked); }, request);
  if (problem.is_ok()) return problem;
  return Status(problem.status().code(), fmt::format("{}\nreproduce: retrograd explain \"{}\"",
                                                     problem.status().message(), to_text(request)));
}

}  // namespace retrograd::problem
