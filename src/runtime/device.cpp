// SPDX-License-Identifier: Apache-2.0
// The list of devices: the one place that names their implementations.
#include "runtime/device.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "runtime/host/host_device.h"

namespace retrograd::runtime {

const Machine& Device::gpu_machine() const {
  static const Machine none{.name = "no GPU", .kind = Machine::Kind::kGpu, .cpu = {}, .gpu = {}};
  return none;
}

std::string Device::label() const {
  return fmt::format("{}:{}", kind_ == DeviceKind::kCpu ? "cpu" : "cuda", index_);
}

namespace {

// Never destroyed: callers free memory and streams from static destructors of their own.
const std::vector<Device*>& cpu_devices() {
  static const auto& all = *[] {
    auto device = std::make_unique<HostDevice>(0);
    auto list = std::make_unique<std::vector<Device*>>(1, device.get());
    static_cast<void>(device.release());
    return list.release();
  }();
  return all;
}
const std::vector<Device*>& cuda_devices() {
  static const auto& all = *new std::vector<Device*>(make_cuda_devices());
  return all;
}
const std::vector<Device*>& devices_of(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? cpu_devices() : cuda_devices();
}

}  // namespace

std::span<Device* const> devices() {
  static const auto& all = *[] {
    auto list = std::make_unique<std::vector<Device*>>(cpu_devices());
    list->insert(list->end(), cuda_devices().begin(), cuda_devices().end());
    return list.release();
  }();
  return all;
}

Device* find_device(DeviceKind kind, int index) {
  for (Device* device : devices_of(kind))
    if (device->index() == index) return device;
  return nullptr;
}

int device_count(DeviceKind kind) { return static_cast<int>(devices_of(kind).size()); }

}  // namespace retrograd::runtime
