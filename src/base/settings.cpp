// SPDX-License-Identifier: Apache-2.0
// Parses the RETROGRAD_… variables; an illegal value is named in a warning together with the legal ones.
#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <new>

#include "base/log.h"

namespace retrograd {
namespace {

constexpr int kMostThreads = 1024;
constexpr size_t kMostCharactersShown = 80;

using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// An empty variable counts as one that is not set: `RETROGRAD_DEVICE= program` is how shells clear one.
std::optional<std::string> value_of(const Lookup& lookup, std::string_view variable) {
  std::optional<std::string> value = lookup(variable);
  return value && !value->empty() ? value : std::nullopt;
}

std::string illegal(std::string_view variable, std::string_view value, std::string_view legal,
                    std::string_view instead) {
  const bool cut = value.size() > kMostCharactersShown;
  return fmt::format("{} is \"{}{}\", legal is {}; {}", variable, value.substr(0, kMostCharactersShown),
                     cut ? "..." : "", legal, instead);
}

// The whole text, without blanks or a plus sign.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void parse_num_threads(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_NUM_THREADS";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  const auto number = whole_number<int>(*value);
  if (number && *number >= 1 && *number <= kMostThreads) {
    out.settings.num_threads = *number;
  } else {
    out.warnings.push_back(illegal(kVariable, *value,
                                   fmt::format("a whole number from 1 to {}", kMostThreads),
                                   "one thread a core is used instead"));
  }
}

void parse_device(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_DEVICE";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  out.settings.device = device_choice_from_name(*value);
  if (!out.settings.device) {
    out.warnings.push_back(
        illegal(kVariable, *value, "cpu, cuda or auto",
                "it is ignored, and auto is used unless a configuration file says otherwise"));
  }
}

void parse_hf32_bits(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_HF32_BITS";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  if (*value == "10" || *value == "11") {
    out.settings.hf32_mantissa_bits = *value == "10" ? 10 : 11;
  } else {
    out.warnings.push_back(illegal(kVariable, *value, "10 or 11",
                                   fmt::format("{} is used instead", out.settings.hf32_mantissa_bits)));
  }
}

void parse_cpu_isa(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_CPU_ISA";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  for (const std::string_view isa : kCpuIsas)
    if (*value == isa) out.settings.cpu_isa = *value;
  if (out.settings.cpu_isa.empty())
    out.warnings.push_back(illegal(kVariable, *value, fmt::format("{}", fmt::join(kCpuIsas, ", ")),
                                   "the best instruction set of the machine is used instead"));
}

void parse_bits(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_BITS";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  if (*value == "fast" || *value == "portable") {
    out.settings.bits = *value == "portable" ? Bits::kPortable : Bits::kFast;
  } else {
    out.warnings.push_back(illegal(kVariable, *value, "fast or portable", "fast is used instead"));
  }
}

// A number of bytes; K, M or G behind it counts in powers of 1024.
std::optional<size_t> byte_count(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const bool has_unit = unit != std::string_view::npos;
  if (has_unit) text.remove_suffix(1);
  const size_t shift = has_unit ? 10 * (unit + 1) : 0;
  const auto number = whole_number<size_t>(text);
  if (!number || *number > SIZE_MAX >> shift) return std::nullopt;
  return *number << shift;
}

void parse_workspace_limit(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_WORKSPACE_LIMIT";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  const auto bytes = byte_count(*value);
  if (bytes) {
    out.settings.workspace_limit = *bytes;
  } else {
    out.warnings.push_back(illegal(kVariable, *value,
                                   "a number of bytes, with K, M or G behind it or without",
                                   "the default limit is used instead"));
  }
}

void parse_winograd(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_WINOGRAD";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  if (*value == "0" || *value == "1") {
    out.settings.winograd = *value == "1";
  } else {
    out.warnings.push_back(illegal(kVariable, *value, "0 or 1", "0 is used instead"));
  }
}

void parse_rules(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_RULES";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  out.settings.rules = product_from_name(*value);
  if (!out.settings.rules) {
    out.warnings.push_back(
        illegal(kVariable, *value, "a2, a3, 910_95 or training",
                "it is ignored, and no product's rules are kept unless a configuration file says so"));
  }
}

void parse_soc_name(const Lookup& lookup, ParsedSettings& out) {
  out.settings.soc_name = value_of(lookup, "RETROGRAD_SOC_NAME").value_or("");
}

void parse_cuda_architecture(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_CUDA_ARCH";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  const auto number = whole_number<int>(*value);
  if (number && *number >= 80 && *number <= 999) {
    out.settings.cuda_architecture = *number;
  } else {
    out.warnings.push_back(illegal(kVariable, *value, "a compute capability from 80 on, such as 80 or 90",
                                   "all that the GPU has is used"));
  }
}

std::string_view trimmed(std::string_view word) {
  constexpr std::string_view kBlank = " \t";
  const size_t first = word.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return word.substr(first, word.find_last_not_of(kBlank) - first + 1);
}

bool Settings::*topic_named(std::string_view word) {
  if (word == "warning") return &Settings::warnings;
  if (word == "error") return &Settings::errors;
  if (word == "dispatch") return &Settings::dispatch;
  if (word == "call") return &Settings::calls;
  return nullptr;
}

// The words add up in any order: `none` takes back the warnings that are on by default, and nothing else.
void parse_verbose(const Lookup& lookup, ParsedSettings& out) {
  constexpr std::string_view kVariable = "RETROGRAD_VERBOSE";
  const auto value = value_of(lookup, kVariable);
  if (!value) return;
  Settings& s = out.settings;
  s.warnings = false;
  bool none = false;
  for (std::string_view rest = *value; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view word = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (word.empty()) continue;
    if (word == "none") {
      none = true;
    } else if (word == "all") {
      s.warnings = s.errors = s.dispatch = s.calls = true;
    } else if (bool Settings::*topic = topic_named(word)) {
      s.*topic = true;
    } else {
      out.warnings.push_back(illegal(kVariable, word,
                                     "a comma list of none, warning, error, dispatch, call, all",
                                     "this word is ignored and the others are used"));
    }
  }
  if (!none) s.warnings = true;
}

std::optional<std::string> from_environment(std::string_view variable) {
  const char* value = std::getenv(std::string(variable).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Null without memory.
const ParsedSettings* parse_environment() noexcept {
  try {
    return new ParsedSettings(parse_settings(from_environment));
  } catch (...) {
    return nullptr;
  }
}

// The settings that all threads have agreed on; null until one of them had the memory to read them. Never
// destroyed: worker threads ask while the process exits.
const ParsedSettings* parsed_environment() noexcept {
  static std::atomic<const ParsedSettings*> agreed{nullptr};
  const ParsedSettings* found = agreed.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const ParsedSettings* const mine = parse_environment();
  if (mine == nullptr) return agreed.load(std::memory_order_acquire);
  if (agreed.compare_exchange_strong(found, mine, std::memory_order_acq_rel)) return mine;
  delete mine;
  return found;
}

}  // namespace

ParsedSettings parse_settings(const Lookup& lookup) {
  ParsedSettings out;
  parse_num_threads(lookup, out);
  parse_device(lookup, out);
  parse_hf32_bits(lookup, out);
  parse_cpu_isa(lookup, out);
  parse_bits(lookup, out);
  parse_workspace_limit(lookup, out);
  parse_winograd(lookup, out);
  parse_rules(lookup, out);
  parse_soc_name(lookup, out);
  parse_cuda_architecture(lookup, out);
  out.settings.tuning = value_of(lookup, "RETROGRAD_TUNING").value_or("");
  parse_verbose(lookup, out);
  return out;
}

std::optional<DeviceChoice> device_choice_from_name(std::string_view name) {
  if (name == "auto") return DeviceChoice::kAuto;
  if (name == "cpu") return DeviceChoice::kCpu;
  if (name == "cuda") return DeviceChoice::kCuda;
  return std::nullopt;
}

const Settings& settings() {
  if (const Settings* const found = settings_if_read()) return *found;
  throw std::bad_alloc();
}

const Settings* settings_if_read() noexcept {
  const ParsedSettings* const parsed = parsed_environment();
  if (parsed == nullptr) return nullptr;
  // The log asks whether warnings are wanted. So they are written only once `parsed` is complete, and behind
  // a flag that is taken before the first of them: the call from inside finds it taken and returns.
  static std::atomic<bool> announced{false};
  if (!parsed->warnings.empty() && !announced.exchange(true)) {
    for (const std::string& warning : parsed->warnings) log::warn_once(warning);
  }
  return &parsed->settings;
}

}  // namespace retrograd
