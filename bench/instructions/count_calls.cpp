// SPDX-License-Identifier: Apache-2.0
// count_calls PROBLEM…: one call of every implementation that takes a pass, for qemu with
// qemu_counter.c. A line "begin" before the call and "end" behind it, each one write to standard output, are
// where the counter says how many instructions have run.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "tools/measure/implementation_times.h"
#include "tools/measure/operand_memory.h"
#include "tools/measure/plan_runner.h"

namespace {

using namespace retrograd;

// Past stdio, which would keep the line until later.
void say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::exit(1);
}

Status count(const problem::Problem& problem, size_t pass, const engines::Bindings& bindings,
             runtime::Device& device) {
  const problem::Problem one = tools::with_pass(problem, pass);
  const Machine& machine = engines::machine_of(device);
  bool chosen = true;
  for (const plan::Answer& answer :
       plan::judge(engines::candidates(device.kind()), one.passes.front(), machine)) {
    if (!answer.support.accepted()) break;  // they come last
    if (std::string_view(answer.candidate->name()) == "reference")
      continue;  // plain loops, billions of instructions
    const engines::Candidate* const list[] = {answer.candidate};
    RG_TRY(auto plan, plan::make_plan(one, device, "count", list, settings().workspace_limit));
    RG_TRY(auto runner, tools::PlanRunner::make(std::move(plan), bindings));
    RG_TRY(const double first, runner.call());  // which chooses kernels and touches pages
    say(fmt::format("begin {} {} {} {}\n", answer.candidate->name(), name_of(one.passes.front()),
                    tools::work_of(one).operations, chosen ? "chosen" : "other"));
    RG_TRY(const double second, runner.call());
    say("end\n");
    static_cast<void>(first + second);
    chosen = false;
  }
  return Status::ok();
}

Status count_all(std::string_view text, runtime::Device& device) {
  RG_TRY(const problem::Request request, problem::parse_request(text));
  RG_TRY(const auto problem, problem::judge(request));
  RG_TRY(const auto memory, tools::OperandMemory::make(problem, device));
  say(fmt::format("problem {}\n", text));
  for (size_t pass = 0; pass < problem.passes.size(); ++pass)
    RG_CHECK(count(problem, pass, memory.bindings(), device));
  return Status::ok();
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string_view> problems(arguments + 1, arguments + count);
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  say(fmt::format("target {}\n", engines::machine_of(device).name));
  for (const std::string_view problem : problems) {
    const Status status = count_all(problem, device);
    if (status.is_ok()) continue;
    fmt::print(stderr, "count_calls: {}: {}\n", problem, status.message());
    return 1;
  }
  return 0;
}
