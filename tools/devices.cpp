// SPDX-License-Identifier: Apache-2.0
// Finds devices by name.
#include "tools/devices.h"

#include <fmt/format.h>

#include "engines/registry.h"

namespace retrograd::tools {

Result<runtime::Device*> device_from_name(const std::string& name) {
  if (name != "cpu" && name != "cuda")
    return Status(Code::kInvalidArgument, fmt::format("--device: '{}' is not one of cpu, cuda", name));
  const auto kind = name == "cuda" ? runtime::DeviceKind::kCuda : runtime::DeviceKind::kCpu;
  if (engines::candidates(kind).empty())
    return Status(Code::kNoDevice, "--device cuda: this build has no engines for NVIDIA GPUs");
  runtime::Device* const device = runtime::find_device(kind, 0);
  if (device == nullptr)
    return Status(Code::kNoDevice, "--device cuda: there is no NVIDIA GPU that this process can use");
  return device;
}

}  // namespace retrograd::tools
