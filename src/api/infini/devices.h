// SPDX-License-Identifier: Apache-2.0
// infiniDevice_t and our devices, and each thread's current one.
#pragma once

#include <optional>

#include "api/infini/guard.h"
#include "infinicore.h"
#include "runtime/device.h"

namespace retrograd::api::infini {

// nullopt for the types we do not run, numbers that name no type included.
std::optional<runtime::DeviceKind> kind_of(infiniDevice_t type);
infiniDevice_t type_of(const runtime::Device& device);

// DEVICE_TYPE_NOT_SUPPORTED, naming `type` and those we run.
Answer unsupported_type(infiniDevice_t type);
// The device, or why there is none: DEVICE_TYPE_NOT_SUPPORTED or DEVICE_NOT_FOUND.
Answer find_device(infiniDevice_t type, int id, runtime::Device*& device);

// Of the calling thread; (CPU, 0) until it sets another.
runtime::Device& current_device();
Status set_current_device(runtime::Device& device);

}  // namespace retrograd::api::infini
