// SPDX-License-Identifier: Apache-2.0
// The Machine (base/machine.h) of a device.
#pragma once

#include "base/machine.h"
#include "runtime/device.h"

namespace retrograd::engines {

// Found at the first call, the same for the life of the process.
const Machine& machine_of(const runtime::Device& device);
const Machine& machine_of(runtime::DeviceKind kind);  // of the first device of that kind

}  // namespace retrograd::engines
