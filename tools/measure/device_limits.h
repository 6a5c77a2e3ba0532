// SPDX-License-Identifier: Apache-2.0
// What a device can do: measured on a CPU, as its Machine says on a GPU.
#pragma once

#include <array>
#include <memory>

#include "base/dtype.h"
#include "runtime/device.h"
#include "tools/measure/machine_limits.h"
#include "tools/measure/work.h"

namespace retrograd::tools {

struct Limits {
  double peak = 0;  // operations a second
  double copy = 0;  // bytes a second, of the level that the tensors live in
  MemoryLevel level = MemoryLevel::kDram;

  // The larger of the two shares, of 1.
  double roofline(const Work& work, double seconds) const;
};

class DeviceLimits {
 public:
  explicit DeviceLimits(const runtime::Device& device);
  // Now, for tensors of that many bytes. The type matters on GPUs.
  Limits measure(double bytes, DType dtype);
  // The same, measured again every few dozen calls.
  Limits recent(double bytes, DType dtype);

 private:
  const runtime::Device& device_;
  Caches caches_;
  std::unique_ptr<MachineLimits> cpu_;  // null on a GPU
  struct Recent {
    Limits limits;
    int uses = 0;
  };
  std::array<Recent, kMemoryLevels> recent_;
};

}  // namespace retrograd::tools
