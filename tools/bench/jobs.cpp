// SPDX-License-Identifier: Apache-2.0
// Problems times gradients.
#include "tools/bench/jobs.h"

#include <algorithm>

#include "problem/problem_text.h"

namespace retrograd::tools {

Result<std::vector<BenchJob>> bench_jobs(const BenchOptions& options,
                                         std::span<const char* const> otherwise) {
  ProblemSource source = options.problems;
  if (source.texts.empty() && source.files.empty()) source.texts.assign(otherwise.begin(), otherwise.end());
  RG_TRY(const auto problems, collect(source));
  RG_TRY(const auto gradients, gradients_of(options.passes));
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
