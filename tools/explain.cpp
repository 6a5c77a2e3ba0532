// SPDX-License-Identifier: Apache-2.0
// `retrograd explain`: judges one problem and tells how it would be computed.
#include <fmt/format.h>

#include <cstdio>

#include "base/settings.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "problem/problem.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "tools/commands.h"
#include "tools/math_mode.h"

namespace retrograd::tools {
namespace {

// Every candidate for this kind of pass, the cheapest first: that one computes it.
void tell_pass(const problem::Pass& pass, runtime::DeviceKind kind, const Machine& machine) {
  fmt::print("{}\n", name_of(pass));
  bool chosen = false;
  for (plan::Answer& answer : plan::judge(engines::candidates(kind), pass, machine)) {
    std::unique_ptr<const engines::Step> step;
    if (answer.support.accepted()) step = plan::make_step(answer, pass, machine, settings().workspace_limit);
    const std::string reason = answer.support.accepted() ? "" : answer.support.reason();
    if (reason.starts_with("computes ")) continue;  // other passes only
    fmt::print("  {:<34} {}\n", answer.candidate->name(),
               step == nullptr ? "declines: " + reason
                               : fmt::format("{:>10.1f} us  {}", answer.microseconds,
                                             chosen ? "would take it" : "takes it"));
    if (step != nullptr && !chosen) {
      if (const std::string how = step->describe(); !how.empty()) fmt::print("    {}\n", how);
      fmt::print("    workspace {} bytes\n", step->workspace_bytes());
    }
    chosen |= step != nullptr;
  }
}

}  // namespace

int explain(const std::string& text) {
  const auto request = problem::parse_request(text);
  if (!request.is_ok()) {
    fmt::print(stderr, "{}\n", request.status().message());
    return 2;
  }
  fmt::print("problem    {}\n", to_text(request.value()));
  auto problem = problem::make_problem(request.value());
  if (!problem.is_ok()) {
    fmt::print(stderr, "refused    {}\n", problem.status().message());
    return 1;
  }
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  for (const std::string& warning : problem.value().warnings) fmt::print("warning    {}\n", warning);
  if (const std::string math = effect_of_math_mode(problem.value()); !math.empty())
    fmt::print("math       {}\n", math);
  for (const problem::Pass& pass : problem.value().passes)
    tell_pass(pass, device.kind(), engines::machine_of(device));
  const auto plan = plan::make_plan(problem.value(), device, "explain");
  if (!plan.is_ok()) {
    fmt::print(stderr, "{}\n", plan.status().message());
    return 1;
  }
  fmt::print("device     {}, {} threads, {}\nworkspace  {} bytes\n", device.label(),
             runtime::ThreadPool::instance().threads(), kernels::cpu::target_name(),
             plan.value()->workspace_bytes());
  return 0;
}

}  // namespace retrograd::tools
