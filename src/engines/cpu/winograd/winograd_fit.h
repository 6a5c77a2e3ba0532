// SPDX-License-Identifier: Apache-2.0
// Which passes Winograd may take, and which it takes faster than the direct engines do.
#pragma once

#include <optional>

#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// The reason to decline that the gathering passes and grad_weight share, or nothing.
std::optional<Reason> winograd_unfit(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cpu
