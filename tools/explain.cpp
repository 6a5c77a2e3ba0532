// SPDX-License-Identifier: Apache-2.0
// `retrograd explain`: judges one problem and tells how it would be computed.
#include <fmt/format.h>

#include <cstdio>

#include "base/settings.h"
#include "engines/registry.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "problem/problem.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "tools/commands.h"
#include "tools/math_mode.h"
#include "tools/problems.h"

namespace retrograd::tools {
namespace {

// Every candidate for this kind of pass in order of preference: the first that accepts computes it.
void tell_pass(const problem::Pass& pass, runtime::Device& device) {
  fmt::print("{}\n", name_of(pass));
  bool chosen = false;
  for (const engines::Candidate* candidate : engines::candidates(device.kind())) {
    const plan::Answer answer = plan::ask(*candidate, pass, settings().workspace_limit);
    const bool takes = answer.support.accepted();
    const std::string reason = takes ? "" : answer.support.reason();
    if (reason.starts_with("computes ")) continue;  // other passes only
    fmt::print("  {:<30} {}\n", candidate->name(),
               !takes   ? "declines: " + reason
               : chosen ? "would take it"
                        : "takes it");
    if (takes && !chosen) {
      if (const std::string how = answer.step->describe(); !how.empty()) fmt::print("    {}\n", how);
      fmt::print("    workspace {} bytes\n", answer.step->workspace_bytes());
    }
    chosen |= takes;
  }
}

}  // namespace

int explain(const std::string& text) {
  auto request = problem::parse_request(text);
  if (!request.is_ok()) {
    fmt::print(stderr, "{}\n", request.status().message());
    return 2;
  }
  apply_settings(request.value());
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
  for (const problem::Pass& pass : problem.value().passes) tell_pass(pass, device);
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
