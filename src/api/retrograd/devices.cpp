// SPDX-License-Identifier: Apache-2.0
// Finds devices, counts and describes them.
#include "api/retrograd/devices.h"

#include <fmt/format.h>

#include "api/retrograd/guard.h"
#include "api/retrograd/texts.h"
#include "plan/explain.h"

using namespace retrograd;
using namespace retrograd::api::own;

namespace retrograd::api::own {

Result<runtime::DeviceKind> kind_of(retrogradDeviceType_t type, const char* argument) {
  if (type == RETROGRAD_CPU) return runtime::DeviceKind::kCpu;
  if (type == RETROGRAD_CUDA) return runtime::DeviceKind::kCuda;
  return Status(Code::kNoDevice, "{} is {}, expected RETROGRAD_CPU (0) or RETROGRAD_CUDA (1)", argument,
                static_cast<int>(type));
}

Result<runtime::Device*> find_device(const retrogradDevice_t& device, const char* argument) {
  RG_TRY(const auto kind, kind_of(device.type, fmt::format("{}.type", argument).c_str()));
  if (runtime::Device* const found = runtime::find_device(kind, device.index)) return found;
  const int count = runtime::device_count(kind);
  return Status(Code::kNoDevice, "{} is {}, which does not exist: {}", argument, label_of(device),
                count == 0 ? "there is none of this type, or this build has no engines for it"
                           : fmt::format("expected an index of 0 to {}", count - 1));
}

std::string label_of(const retrogradDevice_t& device) {
  if (device.type == RETROGRAD_CPU) return fmt::format("cpu:{}", device.index);
  if (device.type == RETROGRAD_CUDA) return fmt::format("cuda:{}", device.index);
  return fmt::format("device {}:{}", static_cast<int>(device.type), device.index);
}

}  // namespace retrograd::api::own

retrogradStatus_t retrogradGetDeviceCount(retrogradDeviceType_t type, int32_t* count) {
  return guard(__func__, [&]() -> Status {
    if (count == nullptr) return {Code::kNullArgument, "count is null"};
    RG_TRY(const auto kind, kind_of(type, "type"));
    *count = runtime::device_count(kind);
    return Status::ok();
  });
}

retrogradStatus_t retrogradDescribeDevice(retrogradDevice_t device, char* text, size_t capacity,
                                          size_t* length) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_buffer(text, capacity));
    RG_TRY(const runtime::Device* const found, find_device(device, "device"));
    return hand_out(plan::describe(*found), text, capacity, length);
  });
}
