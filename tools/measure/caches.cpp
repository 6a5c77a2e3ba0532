// SPDX-License-Identifier: Apache-2.0
// Reads /proc. On ARM it holds numbers instead of a name: who made the core, and which one it is.
#include "tools/measure/caches.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace retrograd::tools {
namespace {

struct ArmCore {
  std::string_view implementer, part, name;
};
constexpr std::array<ArmCore, 7> kArmCores = {{{"0x41", "0xd08", "Cortex-A72"},
                                               {"0x41", "0xd0c", "Neoverse N1"},
                                               {"0x41", "0xd40", "Neoverse V1"},
                                               {"0x41", "0xd49", "Neoverse N2"},
                                               {"0x41", "0xd4f", "Neoverse V2"},
                                               {"0x48", "0xd01", "Kunpeng 920"},
                                               {"0xc0", "0xac3", "Ampere-1"}}};

}  // namespace

std::string processor_name(const std::string& cpuinfo) {
  std::ifstream in(cpuinfo);
  std::string implementer, part;
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  if (implementer.empty()) return "unknown";
  for (const ArmCore& core : kArmCores)
    if (core.implementer == implementer && core.part == part) return std::string(core.name);
  return fmt::format("ARM core {} of implementer {}", part, implementer);
}

}  // namespace retrograd::tools
