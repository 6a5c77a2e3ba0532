// SPDX-License-Identifier: Apache-2.0
// Our own calls of one problem on plain memory, timed.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "tools/operand_memory.h"
#include "tools/work.h"

namespace retrograd::tools {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
double median(std::vector<double> values);

class TimedPlan {
 public:
  static Result<TimedPlan> make(const problem::Request& request);

  Result<double> call();
  // The median of calls for about that long, at least one.
  Result<double> time(double seconds, int64_t& runs);
  // One call that judges and plans again, as every call of aclnn does.
  Result<double> whole_call(problem::Request request);

  OperandMemory& memory() { return memory_; }
  const Work& work() const { return work_; }
  double planning_seconds() const { return planning_seconds_; }
  const plan::Plan& plan() const { return *plan_; }

 private:
  OperandMemory memory_;
  Work work_;
  runtime::Device* device_ = nullptr;
  std::shared_ptr<const plan::Plan> plan_;
  double planning_seconds_ = 0;
  AlignedBlock workspace_;
};

}  // namespace retrograd::tools
