// SPDX-License-Identifier: Apache-2.0
// Translates infini's device types and numbers, and keeps the current device of each thread.
#include "api/infini/devices.h"

#include <fmt/format.h>

#include "base/thread_slot.h"

namespace retrograd::api::infini {
namespace {

const ThreadSlot<runtime::Device> current;  // null: (CPU, 0)

}  // namespace

Result<runtime::DeviceKind> kind_of(infiniDevice_t type) {
  if (type == INFINI_DEVICE_CPU) return runtime::DeviceKind::kCpu;
  if (type == INFINI_DEVICE_NVIDIA) return runtime::DeviceKind::kCuda;
  return Status(Code::kDeviceType, "device type is {}, expected CPU (0) or NVIDIA (1)",
                static_cast<int>(type));
}

infiniDevice_t type_of(const runtime::Device& device) {
  return device.kind() == runtime::DeviceKind::kCpu ? INFINI_DEVICE_CPU : INFINI_DEVICE_NVIDIA;
}

Result<runtime::Device*> find_device(infiniDevice_t type, int id) {
  RG_TRY(const auto kind, kind_of(type));
  if (runtime::Device* const device = runtime::find_device(kind, id)) return device;
  const int count = runtime::device_count(kind);
  return Status(Code::kNoDevice, "device {} {} does not exist, {}",
                type == INFINI_DEVICE_CPU ? "CPU" : "NVIDIA", id,
                count == 0 ? "there is none of this type" : fmt::format("expected 0 to {}", count - 1));
}

runtime::Device& current_device() {
  runtime::Device* const device = current.get();
  return device != nullptr ? *device : *runtime::find_device(runtime::DeviceKind::kCpu, 0);
}

Status set_current_device(runtime::Device& device) {
  if (current.set(&device)) return Status::ok();
  return {Code::kOutOfMemory, "this thread has no room for its current device"};
}

}  // namespace retrograd::api::infini
