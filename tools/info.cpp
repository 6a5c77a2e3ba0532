// SPDX-License-Identifier: Apache-2.0
// `retrograd info`: what a bug report needs to know of the machine, the build and the settings.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "base/settings.h"
#include "engines/cost.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "hwy/highway.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/targets.h"
#include "runtime/thread_pool.h"
#include "tools/commands.h"
#include "tools/measure/caches.h"

extern char** environ;

namespace retrograd::tools {
namespace {

void line(std::string_view key, const std::string& value) { fmt::print("{:<16} {}\n", key, value); }

// Highway gives better targets lower bits.
std::string target_list(int64_t targets) {
  std::vector<std::string> names;
  for (; targets != 0; targets &= targets - 1) {
    const std::string name = hwy::TargetName(targets & -targets);
    if (name.find('?') == std::string::npos) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string size_text(double bytes) {
  constexpr double kKi = 1024;
  if (bytes >= kKi * kKi * kKi) return fmt::format("{:.1f} GiB", bytes / kKi / kKi / kKi);
  return bytes >= kKi * kKi ? fmt::format("{:g} MiB", bytes / kKi / kKi)
                            : fmt::format("{:g} KiB", bytes / kKi);
}

std::string cache_text() {
  const Caches caches = read_caches();
  std::string text;
  for (size_t i = 0; i < caches.level.size(); ++i) {
    const Cache& cache = caches.level[i];
    text += fmt::format("{}L{} {}{}", i == 0 ? "" : ", ", i + 1, size_text(static_cast<double>(cache.bytes)),
                        cache.shared_by > 1 ? fmt::format(" (shared by {})", cache.shared_by) : "");
  }
  return text;
}

// The shared objects of our dependencies that this process has loaded.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string each; std::getline(maps, each);) {
    const size_t slash = each.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = each.substr(slash);
    for (const char* name : {"libfmt", "libhwy"})
      if (path.find(name) != std::string::npos && std::find(paths.begin(), paths.end(), path) == paths.end())
        paths.push_back(path);
  }
  return paths;
}

std::string names_of(std::span<const engines::Candidate* const> candidates) {
  std::vector<const char*> names;
  for (const engines::Candidate* candidate : candidates) names.push_back(candidate->name());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string topics(const Settings& s) {
  std::vector<const char*> names;
  if (s.warnings) names.push_back("warning");
  if (s.errors) names.push_back("error");
  if (s.dispatch) names.push_back("dispatch");
  if (s.calls) names.push_back("call");
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

std::string instructions() {
  using kernels::cpu::CellType;
  return fmt::format("{}{}{}", kernels::cpu::target_name(),
                     kernels::cpu::has_bf16_products() ? ", products of bf16 pairs" : "",
                     kernels::cpu::has_tiles(CellType::kF16)    ? ", bf16 and f16 tiles of AMX"
                     : kernels::cpu::has_tiles(CellType::kBf16) ? ", bf16 tiles of AMX"
                                                                : "");
}

std::string workspace_limit(const Settings& s) {
  if (s.workspace_limit != SIZE_MAX) return fmt::format("{} bytes", s.workspace_limit);
  return s.bits == Bits::kPortable ? "no limit" : "on a CPU 1.5 times the largest operand + 8 MB";
}

void tell_settings() {
  const Settings& s = settings();
  const std::string device = !s.device                          ? "auto"
                             : *s.device == DeviceChoice::kCpu  ? "cpu"
                             : *s.device == DeviceChoice::kCuda ? "cuda"
                                                                : "auto";
  const std::pair<const char*, std::string> effects[] = {
      {"RETROGRAD_NUM_THREADS", fmt::format("{} threads", runtime::ThreadPool::instance().threads())},
      {"RETROGRAD_DEVICE", device},
      {"RETROGRAD_HF32_BITS", fmt::format("{}", s.hf32_mantissa_bits)},
      {"RETROGRAD_CPU_ISA", s.cpu_isa.empty() ? "the best there is" : instructions()},
      {"RETROGRAD_BITS", s.bits == Bits::kPortable ? "portable" : "fast"},
      {"RETROGRAD_WORKSPACE_LIMIT", workspace_limit(s)},
      {"RETROGRAD_TUNING", engines::uses_given_tuning() ? s.tuning : "the built-in table"},
      {"RETROGRAD_WINOGRAD", s.winograd ? "1" : "0"},
      {"RETROGRAD_CUDA_ARCH", s.cuda_architecture == 0 ? "the GPU's" : std::to_string(s.cuda_architecture)},
      {"RETROGRAD_RULES", s.rules ? std::string(name_of(*s.rules)) : "no product's"},
      {"RETROGRAD_SOC_NAME", s.soc_name.empty() ? "the device's or the product's" : s.soc_name},
      {"RETROGRAD_VERBOSE", topics(s)},
  };
  for (const auto& [variable, effect] : effects) {
    const char* value = std::getenv(variable);
    fmt::print("  {:<26} {:<12} in effect: {}\n", variable,
               value == nullptr ? "not set" : fmt::format("\"{}\"", value), effect);
  }
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string entry = *each, name = entry.substr(0, entry.find('='));
    const auto known = [&](const auto& effect) { return name == effect.first; };
    if (name.starts_with("RETROGRAD_") && std::none_of(std::begin(effects), std::end(effects), known))
      fmt::print("  {:<26} set, but no setting of the library\n", name);
  }
}

}  // namespace

int info() {
  const auto candidates = engines::candidates(runtime::DeviceKind::kCpu);  // RETROGRAD_CPU_ISA in effect
  line("retrograd", fmt::format("{}, {}", RETROGRAD_VERSION, RETROGRAD_BUILD));
  utsname system{};
  if (uname(&system) == 0)
    line("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  line("processor",
       fmt::format("{}, {} threads of hardware", processor_name(), std::thread::hardware_concurrency()));
  line("instructions", instructions() + " in use");
  line("  compiled in", target_list(HWY_TARGETS));
  line("  processor has", target_list(hwy::SupportedTargets()));
  line("caches", cache_text());
  for (const runtime::Device* device : runtime::devices()) {
    const auto memory = device->memory_info();
    line("device",
         fmt::format("{} {}{}", device->label(), device->soc_name(),
                     memory.is_ok() ? fmt::format(", {} of memory, {} free",
                                                  size_text(static_cast<double>(memory.value().total_bytes)),
                                                  size_text(static_cast<double>(memory.value().free_bytes)))
                                    : ""));
    line("  planned as", text_of(engines::machine_of(*device)));
  }
  line("engines", names_of(candidates));
  if (const auto on_gpu = engines::candidates(runtime::DeviceKind::kCuda); !on_gpu.empty())
    line("  on GPUs", names_of(on_gpu));
  line("libraries", fmt::format("fmt {}.{}.{}, Highway {}.{}.{}", FMT_VERSION / 10000,
                                FMT_VERSION / 100 % 100, FMT_VERSION % 100, HWY_MAJOR, HWY_MINOR, HWY_PATCH));
  for (const std::string& path : loaded_libraries()) line("", path);
  fmt::print("settings\n");
  tell_settings();
  return 0;
}

}  // namespace retrograd::tools
