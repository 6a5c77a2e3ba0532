// SPDX-License-Identifier: Apache-2.0
// What the CPU engines decline because of its size: legal problems may span more than any memory, with
// strides of 0, and planning them must stay cheap and free of overflow. The reference, which plans nothing,
// takes them.
#pragma once

#include <optional>

#include "engines/engine.h"
#include "problem/pass.h"

namespace retrograd::engines::cpu {

// The reason to decline, or nothing: a sum over nothing, or sizes beyond the limits.
std::optional<Reason> unfit_size(const problem::ConvPass& pass);
std::optional<Reason> unfit_size(const problem::AvgPoolPass& pass);
// The same for the weight alone.
std::optional<Reason> unfit_weight(const problem::ConvPass& pass);
// The same for the phases of a gathering pass.
std::optional<Reason> unfit_phases(const problem::ConvPass& pass);

}  // namespace retrograd::engines::cpu
