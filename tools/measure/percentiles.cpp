// SPDX-License-Identifier: Apache-2.0
// Sorts and interpolates.
#include "tools/measure/percentiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace retrograd::tools {
namespace {

std::string number(double value) {
  return value < 9.995 ? fmt::format("{:>8.3f}", value) : fmt::format("{:>8.1f}", value);
}

}  // namespace

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double place = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

double geometric_mean(const std::vector<double>& values) {
  double logs = 0;
  for (double value : values) logs += std::log(value);
  return std::exp(logs / static_cast<double>(values.size()));
}

std::string percentiles_header(std::string_view what) {
  std::string line = fmt::format("{:<28} {:>7}", what, "figures");
  for (int percent : kPercents) line += fmt::format("{:>7}%", percent);
  return line + fmt::format("{:>8}{:>8}", "worst", "geomean");
}

std::string percentiles_line(std::string_view name, const std::vector<double>& values, Worst worst) {
  std::string line = fmt::format("  {:<26} {:>7}", name, values.size());
  if (values.empty()) return line;
  for (int percent : kPercents) line += number(percentile(values, percent));
  return line + number(percentile(values, worst == Worst::kSmallest ? 0 : 100)) +
         number(geometric_mean(values));
}

}  // namespace retrograd::tools
