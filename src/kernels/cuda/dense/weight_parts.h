// SPDX-License-Identifier: Apache-2.0
// The second half of a grad_weight whose places were cut into parts: the sum of the parts, in order, to where
// the weights lie.
#pragma once

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

struct WeightParts {
  Conv conv;         // w is written
  bool repair;       // what is not finite is taken from the formula
  int64_t x_filled;  // x channels of a group and zeros behind them, a multiple of 4
  // [part][group][y channel][tap][x channel, filled up]
  const float* parts;
  int64_t count;
};

void add_weight_parts(const WeightParts& parts, Stream stream);

}  // namespace retrograd::kernels::cuda
