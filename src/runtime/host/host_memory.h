// SPDX-License-Identifier: Apache-2.0
// How much memory this machine has, and how much of it is free.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/device.h"

namespace retrograd::runtime {

// From the text of /proc/meminfo: MemAvailable, which counts what the kernel would give back when asked, and
// MemTotal. Nullopt when either is missing or not a number of kB.
std::optional<MemoryInfo> parse_meminfo(std::string_view text);

// /proc/meminfo where it can be read, sysinfo() elsewhere.
Result<MemoryInfo> host_memory_info();

}  // namespace retrograd::runtime
