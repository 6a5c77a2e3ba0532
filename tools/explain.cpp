// SPDX-License-Identifier: Apache-2.0
// `retrograd explain`: judges one problem and tells how it would be computed.
#include <fmt/format.h>

#include <cstdio>

#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem.h"
#include "problem/problem_text.h"
#include "tools/commands.h"

namespace retrograd::tools {
namespace {

void tell_pass(const problem::Pass& pass, runtime::Device& device) {
  fmt::print("{}\n", name_of(pass));
  for (const engines::Candidate* candidate : engines::candidates(device.kind())) {
    const engines::Support support = candidate->supports(pass);
    fmt::print("  {:<22} {}\n", candidate->name(),
               support.accepted() ? "takes it" : "declines: " + support.reason());
    if (support.accepted()) return;
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
  auto problem = std::visit([](const auto& r) { return problem::make_problem(r); }, request.value());
  if (!problem.is_ok()) {
    fmt::print(stderr, "refused    {}\n", problem.status().message());
    return 1;
  }
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  for (const std::string& warning : problem.value().warnings) fmt::print("warning    {}\n", warning);
  for (const problem::Pass& pass : problem.value().passes) tell_pass(pass, device);
  const auto plan = plan::make_plan(std::move(problem).value(), device, "explain");
  if (!plan.is_ok()) {
    fmt::print(stderr, "{}\n", plan.status().message());
    return 1;
  }
  fmt::print("device     {}\nworkspace  {} bytes\n", device.label(), plan.value()->workspace_bytes());
  return 0;
}

}  // namespace retrograd::tools
