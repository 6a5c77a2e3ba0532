// SPDX-License-Identifier: Apache-2.0
// Problems times gradients.
#include "tools/bench_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "problem/problem_text.h"

namespace retrograd::tools {

Result<std::vector<BenchJob>> bench_jobs(const BenchOptions& options,
                                         std::span<const char* const> otherwise) {
  ProblemSource source = options.problems;
  if (source.texts.empty() && source.files.empty()) source.texts.assign(otherwise.begin(), otherwise.end());
  RG_TRY(const auto problems, collect(source));
  std::vector<Gradient> gradients;
  for (const std::string& pass : options.passes) {
    const auto gradient = gradient_from_name(pass);
    if (!gradient || gradient == Gradient::kOutput)
      return Status(Code::kInvalidArgument, fmt::format("--passes: '{}' is not one of i, w, b, all", pass));
    gradients.push_back(*gradient);
  }
  constexpr Gradient kForward[] = {Gradient::kOutput};  // of a forward problem there is its output only
  std::vector<BenchJob> jobs;
  for (const NamedProblem& each : problems) {
    std::vector<std::string> seen;  // pooling's only gradient is all of them
    const std::span<const Gradient> wanted = gradients;
    for (Gradient gradient : is_forward(each.request) ? std::span<const Gradient>(kForward) : wanted) {
      auto request = with_gradient(each.request, gradient);
      if (!request) continue;
      if (std::find(seen.begin(), seen.end(), to_text(*request)) != seen.end()) continue;
      seen.push_back(to_text(*request));
      jobs.push_back({each.name, gradient, std::move(*request)});
    }
  }
  return jobs;
}

}  // namespace retrograd::tools
