// SPDX-License-Identifier: Apache-2.0
// The candidates of a GPU. They plan in every build; only one with CUDA runs what they plan.
#pragma once

#include <span>

#include "engines/engine.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates();

}  // namespace retrograd::engines::cuda
