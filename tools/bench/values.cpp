// SPDX-License-Identifier: Apache-2.0
// `retrograd bench --values`: what a call takes where an operand is not finite, next to what it takes where
// all are. Overflow steps are ordinary in mixed-precision training; they must be no cliff.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/bench/jobs.h"
#include "tools/devices.h"
#include "tools/measure/timed_plan.h"
#include "tools/print_error.h"

namespace retrograd::tools {
namespace {

// A problem for each way in which engines treat what is outside a tensor.
constexpr const char* kProblems[] = {
    "conv input=4x96x56x56 weight=96x1x7x7 padding=3x3 groups=96",
    "conv input=8x128x28x28 weight=128x4x3x3 padding=1x1 groups=32",
    "conv input=4x144x56x56 weight=144x1x3x3 padding=1x1 groups=144",
    "conv input=4x256x500 weight=256x1x9 padding=4 groups=256",
    "conv input=4x3x112x112 weight=64x3x7x7 padding=3x3 stride=2x2",
    "conv input=8x256x7x7 weight=256x256x3x3 padding=1x1",
    "conv input=8x256x7x7 weight=256x256x3x3 padding=1x1 dtype=bf16",
    "conv input=2x1x32x32x32 weight=16x1x3x3x3 padding=1x1x1",
    "avgpool input=8x64x56x56 kernel=3x3 stride=2x2 padding=1x1",
};
constexpr int kValueRounds = 5;

struct Case {
  Values values = Values::kFinite;
  problem::Operand operand = problem::Operand::kInput;
  std::vector<double> times;
};

Status measure(const BenchJob& job, const std::vector<Values>& kinds, double seconds,
               runtime::Device& device) {
  RG_TRY(auto plan, TimedPlan::make(job.request, device));
  RG_CHECK(plan.call().status());
  std::vector<Case> cases(1);
  for (const Values values : kinds)
    for (const problem::Operand operand : {problem::Operand::kGradOutput, problem::Operand::kInput,
                                           problem::Operand::kWeight, problem::Operand::kBias})
      if (values != Values::kFinite && plan.memory().holds(operand)) cases.push_back({values, operand, {}});
  int64_t runs = 0;
  for (int round = 0; round < kValueRounds; ++round)
    for (Case& each : cases) {
      RG_CHECK(plan.memory().put(each.operand, each.values));
      RG_TRY(const double time, plan.time(seconds / kValueRounds, runs));
      each.times.push_back(time);
      RG_CHECK(plan.memory().put(each.operand, Values::kFinite));
    }
  const double finite = median(cases.front().times);
  fmt::print("{:<28} {:<3} {:10.1f} us", job.name, name_of(job.gradient), finite * 1e6);
  for (const Case& each : cases)
    if (each.values != Values::kFinite)
      fmt::print("  {} {} {:.2f}x", name_of(each.values), name_of(each.operand), median(each.times) / finite);
  fmt::print("\n");
  std::fflush(stdout);
  return Status::ok();
}

}  // namespace

int bench_values(const BenchOptions& options) {
  const auto fail = [](const Status& status, int code) {
    print_error("retrograd bench: {}\n", status.message());
    return code;
  };
  std::vector<Values> kinds;
  for (const std::string& name : options.values) {
    const auto values = values_from_name(name);
    if (!values)
      return fail({Code::kInvalidArgument,
                   fmt::format("--values: '{}' is not one of finite, one-inf, all-nan", name)},
                  2);
    kinds.push_back(*values);
  }
  const auto jobs = bench_jobs(options, kProblems);
  if (!jobs.is_ok()) return fail(jobs.status(), 2);
  const auto device = device_from_name(options.device);
  if (!device.is_ok()) return fail(device.status(), 1);
  fmt::print("time of a call on finite numbers, and how many times longer it takes on others\n");
  int code = 0;
  for (const BenchJob& job : jobs.value())
    if (const Status status = measure(job, kinds, options.seconds, *device.value()); !status.is_ok())
      code = fail(status, 1);
  return code;
}

}  // namespace retrograd::tools
