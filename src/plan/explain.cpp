// SPDX-License-Identifier: Apache-2.0
// Asks the candidates as make_plan does, and writes down what each answered.
#include "plan/explain.h"

#include <fmt/format.h>

#include <iterator>

#include "base/settings.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"

namespace retrograd::plan {

Explanation explain_pass(const problem::Pass& pass, runtime::DeviceKind kind, const Machine& machine) {
  Explanation told{fmt::format("{}\n", name_of(pass)), 0};
  const auto out = std::back_inserter(told.text);
  bool chosen = false;
  for (Answer& answer : judge(engines::candidates(kind), pass, machine)) {
    std::unique_ptr<const engines::Step> step;
    if (answer.support.accepted()) step = make_step(answer, pass, machine, settings().workspace_limit);
    const std::string reason = answer.support.accepted() ? "" : answer.support.reason();
    if (reason.starts_with("computes ")) continue;  // other passes only
    fmt::format_to(out, "  {:<34} {}\n", answer.candidate->name(),
                   step == nullptr ? "declines: " + reason
                                   : fmt::format("{:>10.1f} us  {}", answer.microseconds,
                                                 chosen ? "would take it" : "takes it"));
    if (step != nullptr && !chosen) {
      if (const std::string how = step->describe(); !how.empty()) fmt::format_to(out, "    {}\n", how);
      told.workspace_bytes = step->workspace_bytes();
      fmt::format_to(out, "    workspace {} bytes\n", told.workspace_bytes);
    }
    chosen |= step != nullptr;
  }
  return told;
}

Result<Explanation> explain(const problem::Problem& problem, runtime::Device& device) {
  Explanation all{fmt::format("problem    {}\n", to_text(problem.request)), 0};
  for (const std::string& warning : problem.warnings) all.text += fmt::format("warning    {}\n", warning);
  for (const problem::Pass& pass : problem.passes)
    all.text += explain_pass(pass, device.kind(), engines::machine_of(device)).text;
  RG_TRY(const auto plan, make_plan(problem, device, "explain"));
  all.workspace_bytes = plan->workspace_bytes();
  all.text += fmt::format("device     {}\nworkspace  {} bytes\n", describe(device), all.workspace_bytes);
  return all;
}

std::string describe(const runtime::Device& device) {
  return fmt::format("{}, {}", device.label(), text_of(engines::machine_of(device)));
}

}  // namespace retrograd::plan
