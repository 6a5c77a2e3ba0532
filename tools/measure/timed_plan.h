// SPDX-License-Identifier: Apache-2.0
// Our own calls of one problem on plain memory of a device, timed.
#pragma once

#include "tools/measure/operand_memory.h"
#include "tools/measure/plan_runner.h"
#include "tools/measure/work.h"

namespace retrograd::tools {

class TimedPlan {
 public:
  static Result<TimedPlan> make(const problem::Request& request, runtime::Device& device);

  Result<double> call() { return runner_.call(); }
  // The median of calls for about that long, at least one.
  Result<double> time(double seconds, int64_t& runs) { return runner_.time(seconds, runs); }
  // One call that judges and plans again, as every call of aclnn does.
  Result<double> whole_call(problem::Request request);

  OperandMemory& memory() { return memory_; }
  const Work& work() const { return work_; }
  double planning_seconds() const { return planning_seconds_; }
  const plan::Plan& plan() const { return runner_.plan(); }

 private:
  OperandMemory memory_;
  Work work_;
  runtime::Device* device_ = nullptr;
  double planning_seconds_ = 0;
  PlanRunner runner_;
};

}  // namespace retrograd::tools
