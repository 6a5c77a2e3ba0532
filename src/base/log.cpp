// SPDX-License-Identifier: Apache-2.0
// Puts a record together and hands it to the sink in one piece. Never throws: a record that finds no memory
// is lost.
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "base/per_process.h"
#include "base/settings.h"

namespace retrograd::log {
namespace {

// Warnings can carry a caller's numbers, so their variety has no bound; the memory that remembers them has.
constexpr size_t kMostDistinctWarnings = 1000;
constexpr size_t kMostCharacters = 1000;

std::atomic<Sink> sink_in_use{nullptr};

std::string_view name_of(Topic topic) {
  static constexpr std::string_view kNames[] = {"warning", "error", "dispatch", "call"};
  return kNames[static_cast<size_t>(topic)];
}

// "retrograd: <topic>: <text>\n". Line ends inside the text become " | ": a record is one line, whatever a
// caller's string contains.
std::string record(Topic topic, std::string_view text) {
  constexpr std::string_view kSeparator = " | ";
  std::string line;
  line.reserve(text.size() + 64);
  line.append("retrograd: ").append(name_of(topic)).append(": ");
  for (const char c : text) {
    if (c == '\n' || c == '\r')
      line += kSeparator;
    else
      line += c;
  }
  line += '\n';
  return line;
}

// The beginning of a long text, and how long it is.
std::string cut(const std::string& text) {
  if (text.size() <= kMostCharacters) return text;
  return text.substr(0, kMostCharacters) + "... (" + std::to_string(text.size()) + " characters)";
}

// True the first time it sees a text. Lives for ever: threads may warn while the process exits.
bool is_new_warning(const std::string& text) {
  struct Seen {
    std::mutex mutex;
    std::unordered_set<std::string> texts;
  };
  static constinit PerProcess<Seen> in_process;  // a forked child's own lock: another thread may hold ours
  Seen& seen = in_process.get();
  std::lock_guard lock(seen.mutex);
  return seen.texts.size() < kMostDistinctWarnings && seen.texts.insert(text).second;
}

}  // namespace

bool enabled(Topic topic) noexcept {
  const Settings* const s = settings_if_read();
  static constexpr bool Settings::*kSwitches[] = {&Settings::warnings, &Settings::errors, &Settings::dispatch,
                                                  &Settings::calls};
  return s != nullptr && s->*kSwitches[static_cast<size_t>(topic)];
}

void write(Topic topic, std::string_view text) noexcept {
  if (!enabled(topic)) return;
  try {
    const std::string line = record(topic, text);
    if (const Sink sink = sink_in_use.load())
      sink(topic, std::string_view(line).substr(0, line.size() - 1));
    else
      std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
  }
}

void warn_once(const std::string& text) noexcept {
  if (!enabled(Topic::kWarning)) return;
  try {
    if (const std::string shown = cut(text); is_new_warning(shown)) write(Topic::kWarning, shown);
  } catch (...) {
  }
}

void set_sink(Sink sink) noexcept { sink_in_use.store(sink); }

}  // namespace retrograd::log
