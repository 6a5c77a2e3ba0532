// SPDX-License-Identifier: Apache-2.0
// The problems a command works on: given as text, or read from files with a problem a line or a row of a
// table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "problem/request.h"

namespace retrograd::tools {

struct NamedProblem {
  std::string name;  // of its row, its place "grouped.txt:4", or empty: given as text
  problem::Request request;
};

struct ProblemSource {
  std::vector<std::string> texts;
  std::vector<std::string> files;  // *.csv: tables such as bench/shapes/conv.csv; others: a problem a line
  std::string rows;                // what the names from files must contain: row_pattern.h
  std::string dtype;               // empty: as the problems say
  std::optional<int> math_mode;    // cubeMathType of convolutions; nullopt: as the problems say
  std::string layout;              // plain or channels-last; empty: as the problems say
};
// In the order given, with the settings applied. A failure says which file, line and token.
Result<std::vector<NamedProblem>> collect(const ProblemSource& source);

// With RETROGRAD_WINOGRAD a convolution may use Winograd as the interfaces' callers may, whatever its text
// says.
void apply_settings(problem::Request& request);

// Every operand of type `dtype`; results that may not have it become FP32.
problem::Request with_dtype(problem::Request request, DType dtype);

// A convolution with that cubeMathType; pooling as it is.
problem::Request with_math_mode(problem::Request request, int mode);

enum class Layout : unsigned char { kAsGiven, kPlain, kChannelsLast };
// Of "", "plain", "channels-last"; a failure says what is expected.
Result<Layout> layout_from_name(const std::string& name);
// Every tensor and weight of a convolution or pooling in that order, without gaps; conv_tbc has one order.
problem::Request with_layout(problem::Request request, Layout layout);

// A part of a call that is timed by itself.
enum class Gradient : unsigned char {
  kInput,
  kWeight,
  kBias,
  kAll,
  kOutput
};  // the last of forward problems
// "i", "w", "b" or "all".
std::string_view name_of(Gradient gradient);
std::optional<Gradient> gradient_from_name(std::string_view name);
// Of --passes; a failure says what is expected.
Result<std::vector<Gradient>> gradients_of(const std::vector<std::string>& passes);
// The request with that gradient alone; nullopt where it does not have it, or not by itself.
std::optional<problem::Request> with_gradient(const problem::Request& request, Gradient gradient);

}  // namespace retrograd::tools
