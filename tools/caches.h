// SPDX-License-Identifier: Apache-2.0
// The processor as the system describes it: its name and its data caches.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace retrograd::tools {

struct Cache {
  int64_t bytes = 0;
  int shared_by = 1;  // logical processors
};
struct Caches {
  std::array<Cache, 3> level;  // L1 data, L2, L3
};
// From /sys; a level it does not tell has 32 KiB, 1 MiB or 32 MiB.
Caches read_caches(const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

// "0-3,8" has five.
int count_in_list(const std::string& list);

// "AMD EPYC 9R14"; "unknown" where /proc/cpuinfo does not say.
std::string processor_name();

}  // namespace retrograd::tools
