// SPDX-License-Identifier: Apache-2.0
// The list of devices: the one place that names their implementations.
#include "runtime/device.h"

#include <fmt/format.h>

#include <vector>

#include "runtime/host/host_device.h"

namespace retrograd::runtime {

std::string Device::label() const {
  return fmt::format("{}:{}", kind_ == DeviceKind::kCpu ? "cpu" : "cuda", index_);
}

std::span<Device* const> devices() {
  // Never destroyed: callers free memory and streams from static destructors of their own.
  static const auto* all = new std::vector<Device*>{new HostDevice(0)};
  return *all;
}

Device* find_device(DeviceKind kind, int index) {
  for (Device* device : devices())
    if (device->kind() == kind && device->index() == index) return device;
  return nullptr;
}

int device_count(DeviceKind kind) {
  int count = 0;
  for (const Device* device : devices()) count += device->kind() == kind ? 1 : 0;
  return count;
}

}  // namespace retrograd::runtime
