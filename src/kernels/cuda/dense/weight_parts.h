// SPDX-License-Identifier: Apache-2.0
// The second half of a grad_weight whose places were cut into parts: the sum of the parts, in order, to where
// the weights lie.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct WeightParts {
  Conv conv;    // w is written
  bool repair;  // what is not finite is taken from the formula
  // The columns of a y channel: (tap, x channel), the channels filled up to x_filled; or, taps_inside, (x
  // channel, tap), filled up to x_filled together.
  bool taps_inside;
  int64_t x_filled;  // a multiple of 4
  // [part][group][y channel][column]
  const float* parts;
  int64_t count;
};

void add_weight_parts(const WeightParts& parts, Stream stream);

}  // namespace retrograd::kernels::cuda
