// SPDX-License-Identifier: Apache-2.0
// retrogradDevice_t and our devices.
#pragma once

#include <string>

#include "base/status.h"
#include "retrograd/retrograd.h"
#include "runtime/device.h"

namespace retrograd::api::own {

Result<runtime::DeviceKind> kind_of(retrogradDeviceType_t type, const char* argument);
// The device, or why there is none.
Result<runtime::Device*> find_device(const retrogradDevice_t& device, const char* argument);
// "cuda:1"; "device 7:0" for what is none.
std::string label_of(const retrogradDevice_t& device);

}  // namespace retrograd::api::own
