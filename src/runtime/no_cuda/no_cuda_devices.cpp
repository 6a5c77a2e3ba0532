// SPDX-License-Identifier: Apache-2.0
// What a build without CUDA has in the way of GPUs.
#include "runtime/cuda/cuda_devices.h"

namespace retrograd::runtime {

std::vector<Device*> make_cuda_devices() { return {}; }

}  // namespace retrograd::runtime
