// SPDX-License-Identifier: Apache-2.0
// Calls, one by one on a CPU, in batches on a GPU.
#include "tools/measure/plan_runner.h"

#include <algorithm>

namespace retrograd::tools {
namespace {

// A batch on a GPU: many times what it takes to see its end.
constexpr double kBatchSeconds = 300e-6;
constexpr double kMostCalls = 100;
// Calls that are not timed, on a CPU. Threads that have slept while others were timed share a core at first,
// and the caches are full of somebody else's data.
constexpr double kSettling = 3e-3;

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<PlanRunner> PlanRunner::make(std::shared_ptr<const plan::Plan> plan,
                                    const engines::Bindings& bindings) {
  PlanRunner runner;
  runtime::Device& device = plan->device();
  const size_t bytes = plan->workspace_bytes();
  RG_TRY(runner.workspace_, DeviceBlock::allocate(device, bytes));
  // The caller's memory, used before.
  if (bytes > 0) RG_CHECK(device.fill(runner.workspace_.get(), 0, bytes));
  if (device.kind() == runtime::DeviceKind::kCpu) {
    runner.stream_ = device.null_stream();
  } else {
    RG_TRY(runner.stream_, device.create_stream());
  }
  runner.plan_ = std::move(plan);
  runner.bindings_ = bindings;
  return runner;
}

Result<double> PlanRunner::calls(int64_t count) {
  const auto begin = Clock::now();
  for (int64_t i = 0; i < count; ++i)
    RG_CHECK(plan::Plan::execute(plan_, bindings_, workspace_.get(), plan_->workspace_bytes(), *stream_));
  if (plan_->device().kind() != runtime::DeviceKind::kCpu) RG_CHECK(stream_->synchronize());
  return seconds_since(begin) / static_cast<double>(count);
}

Result<double> PlanRunner::time(double seconds, int64_t& runs) {
  const bool in_batches = plan_->device().kind() != runtime::DeviceKind::kCpu;
  std::vector<double> times;
  int64_t count = 1;
  auto begin = Clock::now();
  if (!in_batches) {
    do {
      RG_CHECK(calls(1).status());
    } while (seconds_since(begin) < kSettling);
    begin = Clock::now();
  }
  do {
    RG_TRY(const double one, calls(count));
    times.push_back(one);
    runs += count;
    if (in_batches) count = static_cast<int64_t>(std::clamp(kBatchSeconds / one, 1.0, kMostCalls));
  } while (seconds_since(begin) < seconds);
  // The first was no batch.
  if (in_batches && times.size() > 1) times.erase(times.begin());
  return median(std::move(times));
}

}  // namespace retrograd::tools
