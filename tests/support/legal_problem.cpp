// SPDX-License-Identifier: Apache-2.0
// Judges; a refusal is a test failure.
#include "support/legal_problem.h"

#include <gtest/gtest.h>

namespace retrograd::test {

problem::Problem legal_problem(const problem::Request& request) {
  auto result = problem::judge(request);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? std::move(result).value() : problem::Problem{};
}

}  // namespace retrograd::test
