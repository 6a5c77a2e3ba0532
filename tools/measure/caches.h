// SPDX-License-Identifier: Apache-2.0
// The processor as the system describes it: its name, and its caches from below.
#pragma once

#include <string>

#include "base/caches.h"

namespace retrograd::tools {

// "AMD EPYC 9R14", "Neoverse N1"; "unknown" where the file does not say.
std::string processor_name(const std::string& cpuinfo = "/proc/cpuinfo");

}  // namespace retrograd::tools
