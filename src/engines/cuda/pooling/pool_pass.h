// SPDX-License-Identifier: Apache-2.0
// Rules that the engines for pooling on dense tensors share.
#pragma once

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

bool both_planes(const problem::AvgPoolPass& pass);
// x and y of one type with fewer than 2^31 elements and one dense layout, and windows that 32 bits count.
Support is_dense_pool(const problem::AvgPoolPass& pass);

}  // namespace retrograd::engines::cuda
