// SPDX-License-Identifier: Apache-2.0
// Calls of one problem.
#include "tools/measure/timed_plan.h"

namespace retrograd::tools {

Result<TimedPlan> TimedPlan::make(const problem::Request& request, runtime::Device& device) {
  TimedPlan timed;
  RG_TRY(auto problem, problem::judge(request));
  RG_TRY(timed.memory_, OperandMemory::make(problem, device));
  timed.work_ = work_of(problem);
  timed.device_ = &device;
  const auto begin = Clock::now();
  RG_TRY(auto again, problem::judge(request));
  RG_TRY(auto plan, plan::make_plan(again, device, "bench"));
  timed.planning_seconds_ = seconds_since(begin);
  RG_TRY(timed.runner_, PlanRunner::make(std::move(plan), timed.memory_.bindings()));
  return timed;
}

Result<double> TimedPlan::whole_call(problem::Request request) {
  const auto begin = Clock::now();
  RG_TRY(const auto problem, problem::judge(std::move(request)));
  RG_TRY(auto plan, plan::make_plan(problem, *device_, "bench"));
  runner_.replace(std::move(plan));
  RG_CHECK(call().status());
  return seconds_since(begin);
}

}  // namespace retrograd::tools
