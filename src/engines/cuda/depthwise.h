// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with small square kernels on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& depthwise();

}  // namespace retrograd::engines::cuda
