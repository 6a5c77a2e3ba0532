// SPDX-License-Identifier: Apache-2.0
// Runs a plan on operands that are there, and times it. On a GPU calls are timed in batches, so that waiting
// for the last one is not what is measured.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "tools/measure/device_block.h"

namespace retrograd::tools {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
double median(std::vector<double> values);

class PlanRunner {
 public:
  PlanRunner() = default;
  // With a workspace of its own. What is bound outlives the runner.
  static Result<PlanRunner> make(std::shared_ptr<const plan::Plan> plan, const engines::Bindings& bindings);

  // Seconds until the results are there.
  Result<double> call() { return calls(1); }
  // The median of calls for about that long, at least one.
  Result<double> time(double seconds, int64_t& runs);

  const plan::Plan& plan() const { return *plan_; }
  void replace(std::shared_ptr<const plan::Plan> plan) { plan_ = std::move(plan); }

 private:
  Result<double> calls(int64_t count);  // seconds each

  std::shared_ptr<const plan::Plan> plan_;
  engines::Bindings bindings_;
  DeviceBlock workspace_;
  std::shared_ptr<runtime::Stream> stream_;
};

}  // namespace retrograd::tools
