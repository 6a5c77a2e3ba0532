// SPDX-License-Identifier: Apache-2.0
// The problem of a request that must be legal.
#pragma once

#include "problem/problem.h"

namespace retrograd::test {

// A test failure with the request's text where it is not.
problem::Problem legal_problem(const problem::Request& request);

}  // namespace retrograd::test
