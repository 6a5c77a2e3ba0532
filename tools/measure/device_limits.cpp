// SPDX-License-Identifier: Apache-2.0
// Asks MachineLimits or the Machine.
#include "tools/measure/device_limits.h"

#include <algorithm>

#include "engines/machines.h"

namespace retrograd::tools {

double Limits::roofline(const Work& work, double seconds) const {
  return std::max(work.operations / seconds / peak, work.bytes / seconds / copy);
}

DeviceLimits::DeviceLimits(const runtime::Device& device) : device_(device), caches_(read_caches()) {
  if (device.kind() == runtime::DeviceKind::kCpu)
    cpu_ = std::make_unique<MachineLimits>(runtime::ThreadPool::instance(), caches_);
}

Limits DeviceLimits::measure(double bytes, DType dtype) {
  if (cpu_ == nullptr) {
    const GpuFacts& gpu = engines::machine_of(device_).gpu;
    return {(size_of(dtype) == 2 ? gpu.f16_tflops : gpu.fp32_tflops) * 1e12, gpu.copy_gbs * 1e9,
            MemoryLevel::kDram};
  }
  const MemoryLevel level = level_of(bytes, caches_, runtime::ThreadPool::instance().threads());
  return {cpu_->measure_peak(), cpu_->measure_copy(level), level};
}

Limits DeviceLimits::recent(double bytes, DType dtype) {
  if (cpu_ == nullptr) return measure(bytes, dtype);
  constexpr int kUses = 40;
  const MemoryLevel level = level_of(bytes, caches_, runtime::ThreadPool::instance().threads());
  Recent& recent = recent_[static_cast<size_t>(level)];
  if (recent.uses++ % kUses == 0) recent.limits = measure(bytes, dtype);
  return recent.limits;
}

}  // namespace retrograd::tools
