// SPDX-License-Identifier: Apache-2.0
// The candidates of each kind of device, in order of preference. The last one of each accepts everything.
#pragma once

#include <span>

#include "engines/engine.h"

namespace retrograd::engines {

std::span<const Candidate* const> candidates(runtime::DeviceKind kind);

}  // namespace retrograd::engines
