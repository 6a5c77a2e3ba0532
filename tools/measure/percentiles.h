// SPDX-License-Identifier: Apache-2.0
// Percentiles of figures, and the lines of a table of them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd::tools {

inline constexpr std::array<int, 9> kPercents = {1, 5, 10, 25, 50, 75, 90, 95, 99};

// Between the two nearest values in proportion; `values` in any order, not empty.
double percentile(std::vector<double> values, double percent);
double geometric_mean(const std::vector<double>& values);

enum class Worst : unsigned char { kSmallest, kLargest };
std::string percentiles_header(std::string_view what);
// "dense   120  0.31 … 0.02  0.75": how many, the percentiles, the worst, the geometric mean.
std::string percentiles_line(std::string_view name, const std::vector<double>& values, Worst worst);

}  // namespace retrograd::tools
