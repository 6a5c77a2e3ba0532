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

namespace {

// A line for each conversion that the step reads.
std::string conversions_of(const engines::Step& step, const engines::Step* before) {
  std::string text;
  const engines::Conversions wanted = step.conversions();
  const size_t made = before == nullptr ? 0 : count_made(wanted, before->conversions());
  for (size_t i = 0; i < wanted.size(); ++i)
    text += i < made ? fmt::format("    reads {}: converted for the pass before\n", wanted[i]->text())
                     : fmt::format("    reads {}: converted first, {} bytes\n", wanted[i]->text(),
                                   wanted[i]->bytes());
  return text;
}

}  // namespace

Explanation explain_pass(const problem::Pass& pass, runtime::DeviceKind kind, const Machine& machine,
                         const engines::Step* before) {
  Explanation told{fmt::format("{}\n", name_of(pass)), 0, nullptr};
  const auto out = std::back_inserter(told.text);
  for (Answer& answer : judge(engines::candidates(kind), pass, machine)) {
    std::unique_ptr<const engines::Step> step;
    if (answer.support.accepted()) step = make_step(answer, pass, machine, workspace_limit(pass, machine));
    const std::string reason = answer.support.accepted() ? "" : answer.support.reason();
    if (reason.starts_with("computes ")) continue;  // other passes only
    fmt::format_to(out, "  {:<34} {}\n", answer.candidate->name(),
                   step == nullptr ? "declines: " + reason
                                   : fmt::format("{:>10.1f} us  {}", answer.microseconds,
                                                 told.step != nullptr ? "would take it" : "takes it"));
    if (step == nullptr || told.step != nullptr) continue;
    told.step = std::move(step);
    if (const std::string how = told.step->describe(); !how.empty()) fmt::format_to(out, "    {}\n", how);
    told.workspace_bytes = told.step->workspace_bytes();
    fmt::format_to(out, "{}    workspace {} bytes\n", conversions_of(*told.step, before),
                   told.workspace_bytes);
  }
  return told;
}

Result<Explanation> explain(const problem::Problem& problem, runtime::Device& device) {
  Explanation all{fmt::format("problem    {}\n", to_text(problem.request)), 0, nullptr};
  for (const std::string& warning : problem.warnings) all.text += fmt::format("warning    {}\n", warning);
  for (const problem::Pass& pass : problem.passes) {
    Explanation one = explain_pass(pass, device.kind(), engines::machine_of(device), all.step.get());
    all.text += one.text;
    all.step = std::move(one.step);
  }
  RG_TRY(const auto plan, make_plan(problem, device, "explain"));
  all.workspace_bytes = plan->workspace_bytes();
  all.text += fmt::format("device     {}\nworkspace  {} bytes\n", describe(device), all.workspace_bytes);
  return all;
}

std::string describe(const runtime::Device& device) {
  const bool portable = device.kind() == runtime::DeviceKind::kCpu && settings().bits == Bits::kPortable;
  return fmt::format("{}, {}{}", device.label(), text_of(engines::machine_of(device)),
                     portable ? ", portable bits" : "");
}

}  // namespace retrograd::plan
