// SPDX-License-Identifier: Apache-2.0
// The device that --device names.
#pragma once

#include <string>

#include "runtime/device.h"

namespace retrograd::tools {

// "cpu" or "cuda", the first of that kind. Fails with kNoDevice where there is none.
Result<runtime::Device*> device_from_name(const std::string& name);

}  // namespace retrograd::tools
