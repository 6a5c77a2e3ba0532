// SPDX-License-Identifier: Apache-2.0
// The candidates of a GPU. A build without CUDA has none, and answers from no_cuda/.
#pragma once

#include <span>

#include "engines/engine.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates();

}  // namespace retrograd::engines::cuda
