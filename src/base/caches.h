// SPDX-License-Identifier: Apache-2.0
// The data caches of the processor, as the system describes them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace retrograd {

struct Cache {
  int64_t bytes = 0;
  int shared_by = 1;  // logical processors
};
struct Caches {
  std::array<Cache, 3> level;  // L1 data, L2, L3
};
// From /sys; a level it does not tell has 32 KiB, 1 MiB or 32 MiB.
Caches read_caches(const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");
// Of this machine, read once.
const Caches& machine_caches();

// "0-3,8" has five.
int count_in_list(const std::string& list);

}  // namespace retrograd
