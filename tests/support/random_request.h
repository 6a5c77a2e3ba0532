// SPDX-License-Identifier: Apache-2.0
// Random legal requests of every kind: ranks, groups, padding, dilation, transposition, masks, types,
// strides.
#pragma once

#include <random>

#include "problem/problem.h"

namespace retrograd::test {

struct RandomOptions {
  bool all_dtypes = true;     // otherwise f32 only
  bool odd_strides = true;    // permuted, gapped, reversed, broadcast; otherwise dense
  int64_t largest_size = 6;   // of a spatial axis
  int64_t most_channels = 3;  // a group
  int64_t most_groups = 3;
  int64_t largest_kernel = 3;
};

problem::Request random_conv(std::mt19937_64& random, const RandomOptions& options);
problem::Request random_conv_tbc(std::mt19937_64& random, const RandomOptions& options);
problem::Request random_avgpool(std::mt19937_64& random, const RandomOptions& options);

// The problem of a request that must be legal; a test failure with its text otherwise.
problem::Problem legal_problem(const problem::Request& request);

}  // namespace retrograd::test
