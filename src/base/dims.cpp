// SPDX-License-Identifier: Apache-2.0
// Prints Dims.
#include "base/dims.h"

#include <fmt/format.h>

#include <algorithm>

namespace retrograd {

std::string to_string(const Dims& dims) {
  if (dims.empty()) return "scalar";
  return fmt::format("{}", fmt::join(dims.begin(), dims.end(), "x"));
}

std::string joined(std::span<const int64_t> values, std::string_view separator) {
  constexpr size_t kMostShown = 16;
  const auto shown = values.first(std::min(values.size(), kMostShown));
  std::string text = fmt::format("{}", fmt::join(shown, separator));
  if (shown.size() < values.size()) text += fmt::format("{}...({} entries)", separator, values.size());
  return text;
}

}  // namespace retrograd
