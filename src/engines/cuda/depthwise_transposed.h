// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of channels-last tensors on a GPU: copies in row-major planes, and the engines for
// those.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& depthwise_transposed();

}  // namespace retrograd::engines::cuda
