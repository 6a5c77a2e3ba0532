// SPDX-License-Identifier: Apache-2.0
// Prints Dims.
#include "base/dims.h"

#include <fmt/format.h>

namespace retrograd {

std::string to_string(const Dims& dims) {
  if (dims.empty()) return "scalar";
  return fmt::format("{}", fmt::join(dims.begin(), dims.end(), "x"));
}

}  // namespace retrograd
