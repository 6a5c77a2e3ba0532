// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of stride 1 with kernels of any shape up to 64 x 64 on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& depthwise_tiles();

}  // namespace retrograd::engines::cuda
