// SPDX-License-Identifier: Apache-2.0
// The CUDA devices of this machine. A build without CUDA answers from no_cuda/.
#pragma once

#include <vector>

#include "runtime/device.h"

namespace retrograd::runtime {

// One for each GPU that the driver shows, in its order; none without a driver. Never destroyed.
std::vector<Device*> make_cuda_devices();

}  // namespace retrograd::runtime
