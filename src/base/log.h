// SPDX-License-Identifier: Apache-2.0
// The log: one line a record on stderr, chosen by RETROGRAD_VERBOSE. Quiet unless something is wrong.
#pragma once

#include <string>
#include <string_view>

namespace retrograd::log {

// kWarning is on unless RETROGRAD_VERBOSE=none; the others are off unless named.
enum class Topic : unsigned char { kWarning, kError, kDispatch, kCall };

bool enabled(Topic topic) noexcept;
// Writes "retrograd: <topic>: <text>\n" if the topic is enabled, line ends inside the text as " | ".
// Thread-safe, one write a record.
void write(Topic topic, std::string_view text) noexcept;
// The same text is written once in the life of the process, and at most a thousand different ones, each as
// far as its thousandth character.
void warn_once(const std::string& text) noexcept;

// Where records go, without their final line end; stderr when null. For the whole process; for tests.
using Sink = void (*)(Topic topic, std::string_view line);
void set_sink(Sink sink) noexcept;

}  // namespace retrograd::log
