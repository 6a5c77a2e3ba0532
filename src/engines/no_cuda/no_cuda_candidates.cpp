// SPDX-License-Identifier: Apache-2.0
// What a build without CUDA has in the way of engines for GPUs.
#include "engines/cuda/candidates.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates() { return {}; }

}  // namespace retrograd::engines::cuda
