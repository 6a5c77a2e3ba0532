// SPDX-License-Identifier: Apache-2.0
// `retrograd explain`: judges one problem and tells how it would be computed, here or on a machine of a name.
#include <fmt/format.h>

#include <algorithm>
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
#include "tools/devices.h"
#include "tools/machine_text.h"
#include "tools/math_mode.h"

namespace retrograd::tools {
namespace {

struct Place {
  runtime::Device* device;  // null: a machine that is not here
  runtime::DeviceKind kind;
  Machine machine;
};
Result<Place> place_of(const ExplainOptions& options) {
  if (options.machine.empty()) {
    RG_TRY(runtime::Device* const device, device_from_name(options.device));
    return Place{device, device->kind(), engines::machine_of(*device)};
  }
  auto machine = named_machine(options.machine);
  if (!machine)
    return Status(Code::kInvalidArgument, fmt::format("--machine: '{}' is not one of {}", options.machine,
                                                      fmt::join(machine_names(), ", ")));
  const auto kind =
      machine->kind == Machine::Kind::kGpu ? runtime::DeviceKind::kCuda : runtime::DeviceKind::kCpu;
  if (engines::candidates(kind).empty())
    return Status(Code::kNoDevice,
                  fmt::format("--machine {}: this build has no engines for NVIDIA GPUs", options.machine));
  return Place{nullptr, kind, std::move(*machine)};
}

// Every candidate for this kind of pass, the cheapest first: that one computes it. Bytes of its workspace.
size_t tell_pass(const problem::Pass& pass, runtime::DeviceKind kind, const Machine& machine) {
  fmt::print("{}\n", name_of(pass));
  bool chosen = false;
  size_t workspace = 0;
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
      workspace = step->workspace_bytes();
      fmt::print("    workspace {} bytes\n", workspace);
    }
    chosen |= step != nullptr;
  }
  return workspace;
}

}  // namespace

int explain(const ExplainOptions& options) {
  const auto request = problem::parse_request(options.text);
  if (!request.is_ok()) {
    fmt::print(stderr, "{}\n", request.status().message());
    return 2;
  }
  const auto where = place_of(options);
  if (!where.is_ok()) {
    fmt::print(stderr, "retrograd explain: {}\n", where.status().message());
    return where.status().code() == Code::kInvalidArgument ? 2 : 1;
  }
  fmt::print("problem    {}\n", to_text(request.value()));
  auto problem = problem::make_problem(request.value());
  if (!problem.is_ok()) {
    fmt::print(stderr, "refused    {}\n", problem.status().message());
    return 1;
  }
  for (const std::string& warning : problem.value().warnings) fmt::print("warning    {}\n", warning);
  if (const std::string math = effect_of_math_mode(problem.value()); !math.empty())
    fmt::print("math       {}\n", math);
  const auto& [device, kind, machine] = where.value();
  size_t workspace = 0;
  for (const problem::Pass& pass : problem.value().passes)
    workspace = std::max(workspace, tell_pass(pass, kind, machine));
  if (device == nullptr) {
    fmt::print("machine    {}, planned for only\nworkspace  {} bytes\n", text_of(machine), workspace);
    return 0;
  }
  const auto plan = plan::make_plan(problem.value(), *device, "explain");
  if (!plan.is_ok()) {
    fmt::print(stderr, "{}\n", plan.status().message());
    return 1;
  }
  fmt::print("device     {}, {}\nworkspace  {} bytes\n", device->label(),
             kind == runtime::DeviceKind::kCpu
                 ? fmt::format("{} threads, {}", runtime::ThreadPool::instance().threads(),
                               kernels::cpu::target_name())
                 : text_of(machine),
             plan.value()->workspace_bytes());
  return 0;
}

}  // namespace retrograd::tools
