// SPDX-License-Identifier: Apache-2.0
// Parses the RETROGRAD_… variables; an illegal value is named in a warning together with the legal ones.
#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

// Whether it is such a number, which is stored then.
bool store_number(std::string_view text, int lowest, int highest, int& target) {
  const auto number = whole_number<int>(text);
  if (!number || *number < lowest || *number > highest) return false;
  target = *number;
  return true;
}

// Whether it is one of two words; the second is true.
bool store_choice(std::string_view text, std::string_view no, std::string_view yes, bool& target) {
  target = text == yes;
  return target || text == no;
}

// A number of bytes; K, M or G behind it counts in powers of 1024.
bool store_bytes(std::string_view text, size_t& target) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const bool has_unit = unit != std::string_view::npos;
  if (has_unit) text.remove_suffix(1);
  const size_t shift = has_unit ? 10 * (unit + 1) : 0;
  const auto number = whole_number<size_t>(text);
  if (!number || *number > SIZE_MAX >> shift) return false;
  target = *number << shift;
  return true;
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
  Settings& s = out.settings;
  // store(text): whether it is legal; what is not leaves its setting as it was.
  const auto parse = [&](std::string_view variable, std::string_view legal, std::string_view instead,
                         const auto& store) {
    if (const auto value = value_of(lookup, variable); value && !store(*value))
      out.warnings.push_back(illegal(variable, *value, legal, instead));
  };
  parse("RETROGRAD_NUM_THREADS", fmt::format("a whole number from 1 to {}", kMostThreads),
        "one thread a core is used instead",
        [&](std::string_view text) { return store_number(text, 1, kMostThreads, s.num_threads); });
  parse("RETROGRAD_DEVICE", "cpu, cuda or auto",
        "it is ignored, and auto is used unless a configuration file says otherwise",
        [&](std::string_view text) { return (s.device = device_choice_from_name(text)).has_value(); });
  parse("RETROGRAD_HF32_BITS", "10 or 11", fmt::format("{} is used instead", s.hf32_mantissa_bits),
        [&](std::string_view text) {
          return text.size() == 2 && store_number(text, 10, 11, s.hf32_mantissa_bits);
        });
  parse("RETROGRAD_CPU_ISA", fmt::format("{}", fmt::join(kCpuIsas, ", ")),
        "the best instruction set of the machine is used instead", [&](std::string_view text) {
          const bool known = std::find(std::begin(kCpuIsas), std::end(kCpuIsas), text) != std::end(kCpuIsas);
          if (known) s.cpu_isa = text;
          return known;
        });
  parse("RETROGRAD_BITS", "fast or portable", "fast is used instead", [&](std::string_view text) {
    bool portable = false;
    const bool known = store_choice(text, "fast", "portable", portable);
    s.bits = portable ? Bits::kPortable : Bits::kFast;
    return known;
  });
  parse("RETROGRAD_WORKSPACE_LIMIT", "a number of bytes, with K, M or G behind it or without",
        "the default limit is used instead",
        [&](std::string_view text) { return store_bytes(text, s.workspace_limit); });
  parse("RETROGRAD_WINOGRAD", "0 or 1", "0 is used instead",
        [&](std::string_view text) { return store_choice(text, "0", "1", s.winograd); });
  parse("RETROGRAD_RULES", "a2, a3, 910_95 or training",
        "it is ignored, and no product's rules are kept unless a configuration file says so",
        [&](std::string_view text) { return (s.rules = product_from_name(text)).has_value(); });
  parse("RETROGRAD_CUDA_ARCH", "a compute capability from 80 on, such as 80 or 90",
        "all that the GPU has is used",
        [&](std::string_view text) { return store_number(text, 80, 999, s.cuda_architecture); });
  s.soc_name = value_of(lookup, "RETROGRAD_SOC_NAME").value_or("");
  s.tuning = value_of(lookup, "RETROGRAD_TUNING").value_or("");
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
