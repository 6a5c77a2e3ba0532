// SPDX-License-Identifier: Apache-2.0
// grad_bias of dense tensors on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& bias();

}  // namespace retrograd::engines::cuda
