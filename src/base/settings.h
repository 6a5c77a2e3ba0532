// SPDX-License-Identifier: Apache-2.0
// Everything the environment can set, read once. A value that is not legal is warned about and ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/product.h"

namespace retrograd {

enum class DeviceChoice : unsigned char { kAuto, kCpu, kCuda };

// What RETROGRAD_CPU_ISA may be: the most that the CPU engines use.
inline constexpr std::string_view kCpuIsas[] = {"amx_fp16", "amx_bf16", "avx512_bf16", "avx512",
                                                "avx2",     "sse4",     "neon",        "baseline"};

// What RETROGRAD_BITS may be: as fast as this machine can, or the same bits on every machine.
enum class Bits : unsigned char { kFast, kPortable };

struct Settings {
  int num_threads = 0;                 // RETROGRAD_NUM_THREADS; 0: one a core
  std::optional<DeviceChoice> device;  // RETROGRAD_DEVICE
  int hf32_mantissa_bits = 11;         // RETROGRAD_HF32_BITS
  std::string cpu_isa;                 // RETROGRAD_CPU_ISA; empty: the best that the machine has
  Bits bits = Bits::kFast;             // RETROGRAD_BITS
  size_t workspace_limit = SIZE_MAX;   // RETROGRAD_WORKSPACE_LIMIT, bytes a plan
  bool winograd = false;               // RETROGRAD_WINOGRAD
  std::string tuning;                  // RETROGRAD_TUNING: a file of efficiencies (engines/cost.h)
  std::optional<Product> rules;        // RETROGRAD_RULES: the product whose rules aclnn keeps
  std::string soc_name;                // RETROGRAD_SOC_NAME; empty: as the device or the product is called
  int cuda_architecture = 0;           // RETROGRAD_CUDA_ARCH, 90: compute capability 9.0; 0: as the GPU is
  bool warnings = true, errors = false, dispatch = false, calls = false;  // RETROGRAD_VERBOSE
};

struct ParsedSettings {
  Settings settings;
  std::vector<std::string> warnings;  // one sentence each: variable, value, legal values
};

// Pure: `lookup` answers nullopt for a variable that is not set.
ParsedSettings parse_settings(const std::function<std::optional<std::string>(std::string_view)>& lookup);

// "cpu", "cuda" or "auto"; nullopt for anything else.
std::optional<DeviceChoice> device_choice_from_name(std::string_view name);

// The process's settings, parsed from the environment at first use; its warnings are logged then. Throws
// std::bad_alloc where there is no memory for that: defaults would stay with whatever is made of them.
const Settings& settings();
// Null in that case; for the log, which has nobody to tell.
const Settings* settings_if_read() noexcept;

}  // namespace retrograd
