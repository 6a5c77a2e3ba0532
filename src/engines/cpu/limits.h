// SPDX-License-Identifier: Apache-2.0
// What the CPU engines decline because of its size: legal problems may span more than any memory, with
// strides of 0, and planning them must stay cheap and free of overflow. The reference, which plans nothing,
// takes them.
#pragma once

#include <optional>
#include <string>

#include "problem/pass.h"

namespace retrograd::engines::cpu {

// The reason to decline, or nothing.
std::optional<std::string> too_large(const problem::ConvPass& pass);
std::optional<std::string> too_large(const problem::AvgPoolPass& pass);

}  // namespace retrograd::engines::cpu
