// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on channels-last tensors, kernels of 3x3 to 7x7.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& depthwise_last();

}  // namespace retrograd::engines::cuda
