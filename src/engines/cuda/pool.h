// SPDX-License-Identifier: Apache-2.0
// Average pooling of dense tensors on a GPU.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& pool();

}  // namespace retrograd::engines::cuda
