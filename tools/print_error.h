// SPDX-License-Identifier: Apache-2.0
// Messages on stderr. Where it cannot be written they are lost, and exit codes stay: fmt::print would throw.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace retrograd::tools {

template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace retrograd::tools
