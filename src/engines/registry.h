// SPDX-License-Identifier: Apache-2.0
// The candidates of each kind of device, in order of preference. The last one of each accepts everything.
#pragma once

#include <optional>
#include <span>

#include "engines/engine.h"

namespace retrograd::engines {

std::span<const Candidate* const> candidates(runtime::DeviceKind kind);

// Why no candidate of such a machine takes the pass; nullopt where the last one does.
std::optional<Reason> unserved(const problem::Pass& pass, const Machine& machine);

}  // namespace retrograd::engines
