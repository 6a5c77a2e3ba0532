// SPDX-License-Identifier: Apache-2.0
// infiniDevice_t and our devices, and each thread's current one.
#pragma once

#include "infinicore.h"
#include "runtime/device.h"

namespace retrograd::api::infini {

// kDeviceType for the types we do not run, numbers that name no type included.
Result<runtime::DeviceKind> kind_of(infiniDevice_t type);
infiniDevice_t type_of(const runtime::Device& device);
Result<runtime::Device*> find_device(infiniDevice_t type, int id);

// Of the calling thread; (CPU, 0) until it sets another.
runtime::Device& current_device();
Status set_current_device(runtime::Device& device);

}  // namespace retrograd::api::infini
