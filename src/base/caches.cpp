// SPDX-License-Identifier: Apache-2.0
// Reads /sys.
#include "base/caches.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace retrograd {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// "1024K", "32M", "512"
int64_t bytes_of(const std::string& size) {
  char* end = nullptr;
  const int64_t value = std::strtoll(size.c_str(), &end, 10);
  return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

}  // namespace

int count_in_list(const std::string& list) {
  std::istringstream in(list);
  std::string range;
  int count = 0;
  while (std::getline(in, range, ',')) {
    const size_t dash = range.find('-');
    const int first = std::atoi(range.c_str());
    count += dash == std::string::npos ? 1 : std::atoi(range.c_str() + dash + 1) - first + 1;
  }
  return count;
}

Caches read_caches(const std::string& folder) {
  Caches caches{{{{32 << 10, 1}, {1 << 20, 1}, {32 << 20, 1}}}};
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder + "/index" + std::to_string(index) + "/";
    const int level = std::atoi(first_line(cache + "level").c_str());
    const int64_t bytes = bytes_of(first_line(cache + "size"));
    if (level < 1 || level > 3 || bytes <= 0 || first_line(cache + "type") == "Instruction") continue;
    const int sharers = count_in_list(first_line(cache + "shared_cpu_list"));
    caches.level[static_cast<size_t>(level - 1)] = {bytes, sharers > 0 ? sharers : 1};
  }
  return caches;
}

const Caches& machine_caches() {
  static const Caches caches = read_caches();
  return caches;
}

}  // namespace retrograd
