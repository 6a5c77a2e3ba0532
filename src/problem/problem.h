// SPDX-License-Identifier: Apache-2.0
// Problem: what is asked, judged and canonical. One that exists is valid; nobody further in checks again.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "problem/pass.h"
#include "problem/request.h"

namespace retrograd::problem {

// What an operand is called where the request came from, and the bytes it spans around its address.
struct OperandFacts {
  const char* name = "";
  int64_t lowest_byte = 0;
  int64_t end_byte = 0;  // one past the highest; an operand without elements spans nothing
};

struct Problem {
  Request request;                    // as asked, for the text form
  std::vector<Pass> passes;           // in the order they run; those without a result element are left out
  std::vector<std::string> warnings;  // legal, but worth saying
  std::array<OperandFacts, kOperandCount> operands;

  OperandFacts& facts(Operand operand) { return operands[static_cast<size_t>(operand)]; }
  const OperandFacts& facts(Operand operand) const { return operands[static_cast<size_t>(operand)]; }
};

Result<Problem> make_problem(Request request);
// The same; a refusal ends with one more line, the command that shows it again, where there is one.
Result<Problem> judge(Request request);

// What make_problem does for each kind: everything of a problem but its request.
Status fill_problem(const ConvRequest& request, Problem& problem);
Status fill_problem(const ConvTbcRequest& request, Problem& problem);
Status fill_problem(const AvgPoolRequest& request, Problem& problem);

// The bytes a judged view spans.
OperandFacts facts_of(const char* name, const TensorView& view);

// The type products are made in: equal types stay, different ones of 16 bits or more meet in FP32.
Result<DType> promote(const ConvRequest& request);

// The output channels that the weight and the groups make; nullopt where they make none, which is refused.
std::optional<int64_t> output_channels(const ConvRequest& request);

}  // namespace retrograd::problem
