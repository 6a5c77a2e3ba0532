// SPDX-License-Identifier: Apache-2.0
// Reads /proc.
#include "tools/caches.h"

#include <fstream>

namespace retrograd::tools {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace retrograd::tools
