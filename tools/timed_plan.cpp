// SPDX-License-Identifier: Apache-2.0
// Calls of one problem.
#include "tools/timed_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace retrograd::tools {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<TimedPlan> TimedPlan::make(const problem::Request& request) {
  TimedPlan timed;
  RG_TRY(auto problem, problem::judge(request));
  RG_TRY(timed.memory_, OperandMemory::make(problem));
  timed.work_ = work_of(problem);
  timed.device_ = runtime::find_device(runtime::DeviceKind::kCpu, 0);
  const auto begin = Clock::now();
  RG_TRY(auto again, problem::judge(request));
  RG_TRY(timed.plan_, plan::make_plan(again, *timed.device_, "bench"));
  timed.planning_seconds_ = seconds_since(begin);
  const size_t bytes = timed.plan_->workspace_bytes();
  timed.workspace_ = allocate_block(bytes);
  if (!timed.workspace_) return Status(Code::kOutOfMemory, fmt::format("no memory for {} bytes", bytes));
  std::fill_n(timed.workspace_.get(), bytes, std::byte{0});  // the caller's memory, used before
  return timed;
}

Result<double> TimedPlan::call() {
  const auto begin = Clock::now();
  RG_CHECK(plan::Plan::execute(plan_, memory_.bindings(), workspace_.get(), plan_->workspace_bytes(),
                               *device_->null_stream()));
  return seconds_since(begin);
}

Result<double> TimedPlan::time(double seconds, int64_t& runs) {
  std::vector<double> times;
  const auto begin = Clock::now();
  do {
    RG_TRY(const double one, call());
    times.push_back(one);
  } while (seconds_since(begin) < seconds);
  runs += static_cast<int64_t>(times.size());
  if (times.size() > 2) times.erase(times.begin());  // it found the caches full of somebody else's data
  return median(std::move(times));
}

Result<double> TimedPlan::whole_call(problem::Request request) {
  const auto begin = Clock::now();
  RG_TRY(const auto problem, problem::judge(std::move(request)));
  RG_TRY(plan_, plan::make_plan(problem, *device_, "bench"));
  RG_CHECK(call().status());
  return seconds_since(begin);
}

}  // namespace retrograd::tools
