// SPDX-License-Identifier: Apache-2.0
// The CUDA devices of a build without CUDA: none.
#include "runtime/device.h"

namespace retrograd::runtime {

std::vector<Device*> make_cuda_devices() { return {}; }

}  // namespace retrograd::runtime
