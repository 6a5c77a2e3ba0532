// SPDX-License-Identifier: Apache-2.0
// How average pooling forward is cut. All kernels add a window in an order that follows from the problem
// alone: rows of places first, then rows, then depths; or, where several threads share a window, each its
// share in that order and the shares in a fixed tree.
#pragma once

#include "kernels/cuda/pooling/pool_forward.h"
#include "kernels/cuda/pooling/pool_plan.h"

namespace retrograd::kernels::cuda {

ForwardChoice forward_choice(const Pool& pool, bool channels_last);

// Neighbouring channels that a thread takes at once; alignment: what both addresses are multiples of.
int forward_vector(const Pool& pool, bool channels_last, int alignment);

// kWhole: runs of `places` elements of x, each the window of one result.
struct WholePlanes {
  int64_t planes, places;
  int lanes;    // threads of a plane: 8, 32 or 256
  float scale;  // of the one divisor there is
};
WholePlanes whole_planes(const Pool& pool);

}  // namespace retrograd::kernels::cuda
