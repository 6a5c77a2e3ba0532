// SPDX-License-Identifier: Apache-2.0
// One plan for each candidate that takes the pass; rounds of all in turn.
#include "tools/measure/implementation_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engines/cost.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "tools/measure/plan_runner.h"

namespace retrograd::tools {
namespace {

constexpr int kRounds = 5;
// Those that take about as long as the fastest are timed in more rounds: who is first among them is not to be
// a matter of noise.
constexpr int kCloseRounds = 10;
constexpr double kClose = 1.3,
                 kCloseSeconds = 4;  // times the fastest; times the seconds of an implementation
constexpr size_t kFewestRounds = 3;  // of fewer the median is no protection against one that was interrupted
// A plain loop that is thought to take that many times as long as the cheapest is not run at all, and
// whoever takes that long is called no more than needed.
constexpr double kHopeless = 20;

bool is_plain_loop(std::string_view name) { return name == "reference" || name == "cuda.direct"; }

struct Runner {
  ImplementationTime row;
  PlanRunner plan;
  std::vector<double> times;
  double spent = 0;
};

Status warm_up(Runner& runner) {
  RG_TRY(double one, runner.plan.call());
  // The first one of all loads code and touches pages, and one that another process has interrupted says
  // nothing.
  constexpr double kLong = 0.5;
  if (one < kLong) {
    RG_TRY(const double second, runner.plan.call());
    one = std::min(one, second);
  }
  runner.row.seconds = runner.spent = one;
  return Status::ok();
}

Status run_rounds(std::vector<Runner>& runners, const TimingOptions& options) {
  const double seconds = options.seconds;
  double best = std::numeric_limits<double>::infinity();
  for (Runner& each : runners) {
    RG_CHECK(warm_up(each));
    best = std::min(best, each.row.seconds);
  }
  const auto time = [&](Runner& each) {
    const auto begin = Clock::now();
    int64_t runs = 0;
    RG_TRY(const double one, each.plan.time(seconds / kRounds, runs));
    each.times.push_back(one);
    each.row.seconds = median(each.times);
    each.spent += seconds_since(begin);
    return Status::ok();
  };
  for (int round = 0; round < kRounds; ++round) {
    for (Runner& each : runners) {
      const bool enough = each.spent > 2 * seconds && each.times.size() >= kFewestRounds;
      if (each.row.seconds <= kHopeless * best && !enough) RG_CHECK(time(each));
    }
    if (options.others) options.others(seconds / kRounds);
  }
  const auto by_time = [](const Runner& a, const Runner& b) { return a.row.seconds < b.row.seconds; };
  best = std::min_element(runners.begin(), runners.end(), by_time)->row.seconds;
  std::vector<Runner*> close;
  for (Runner& each : runners)
    if (each.row.seconds <= kClose * best) close.push_back(&each);
  for (int round = 0; round < kCloseRounds && close.size() > 1; ++round)
    for (Runner* each : close)
      if (each->spent < kCloseSeconds * seconds) RG_CHECK(time(*each));
  return Status::ok();
}

}  // namespace

const ImplementationTime& PassTimes::chosen() const {
  return *std::find_if(rows.begin(), rows.end(), [](const ImplementationTime& row) { return row.chosen; });
}

const ImplementationTime& PassTimes::fastest() const {
  return *std::min_element(rows.begin(), rows.end(),
                           [](const ImplementationTime& a, const ImplementationTime& b) {
                             return b.seconds == 0 || (a.seconds > 0 && a.seconds < b.seconds);
                           });
}

ImplementationTime described(const engines::Candidate& candidate, const problem::Pass& pass,
                             const Machine& machine) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  ImplementationTime row;
  row.name = candidate.name();
  row.pass_case = engines::tuning_case(pass);
  row.predicted = engines::cost(candidate, pass, machine);
  row.effort = candidate.effort(pass, machine);
  // The parts of its cost at the machine's peaks: the formula with efficiencies that leave one.
  const auto with = [&](const engines::Efficiency& efficiency) {
    return engines::own_cost(candidate, pass, machine, efficiency);
  };
  row.arithmetic = with({1, kInfinite, 0});
  row.memory = with({kInfinite, 1, 0});
  row.calls = with({kInfinite, kInfinite, 0, 1000});
  if (const auto rest = candidate.rest(pass, machine))
    row.rest.push_back(described(*rest->candidate, rest->pass, machine));
  return row;
}

problem::Problem with_pass(const problem::Problem& problem, size_t pass) {
  problem::Problem one = problem;
  one.passes = {problem.passes[pass]};
  return one;
}

Result<PassTimes> time_implementations(const problem::Problem& problem, size_t pass,
                                       const engines::Bindings& bindings, runtime::Device& device,
                                       const TimingOptions& options) {
  const problem::Problem one = with_pass(problem, pass);
  const problem::Pass& only = one.passes.front();
  const Machine& machine = engines::machine_of(device);
  PassTimes times;
  times.pass = name_of(only);
  times.work = work_of(one);
  times.largest_operand = engines::largest_operand(only);
  std::vector<Runner> runners;
  double cheapest = 0;
  for (const plan::Answer& answer : plan::judge(engines::candidates(device.kind()), only, machine)) {
    if (!answer.support.accepted()) break;  // they come last
    ImplementationTime row = described(*answer.candidate, only, machine);
    if (!runners.empty() && is_plain_loop(row.name) && row.predicted > kHopeless * cheapest) {
      row.skipped =
          fmt::format("thought to take {:.0f} times as long as the cheapest", row.predicted / cheapest);
      times.rows.push_back(std::move(row));
      continue;
    }
    // One that a library takes not after all, or that needs too much workspace, is not to be had.
    const engines::Candidate* const list[] = {answer.candidate};
    auto plan = plan::make_plan(one, device, "bench", list, std::nullopt);
    if (!plan.is_ok()) continue;
    auto runner = PlanRunner::make(std::move(plan).value(), bindings);
    if (!runner.is_ok()) {  // no memory for its workspace
      row.skipped = runner.status().message();
      times.rows.push_back(std::move(row));
      continue;
    }
    row.workspace = runner.value().plan().workspace_bytes();
    if (runners.empty()) cheapest = row.predicted;
    row.chosen = runners.empty();
    runners.push_back({std::move(row), std::move(runner).value(), {}, 0});
    if (!options.every) break;
  }
  if (runners.empty())
    return Status(Code::kInternal, fmt::format("no engine of {} takes {}", device.label(), times.pass));
  RG_CHECK(run_rounds(runners, options));
  for (Runner& each : runners) times.rows.push_back(std::move(each.row));
  std::stable_sort(
      times.rows.begin(), times.rows.end(),
      [](const ImplementationTime& a, const ImplementationTime& b) { return a.predicted < b.predicted; });
  return times;
}

Result<PassTimes> time_whole_call(const problem::Problem& problem, const engines::Bindings& bindings,
                                  runtime::Device& device, const TimingOptions& options) {
  const Machine& machine = engines::machine_of(device);
  RG_TRY(auto plan, plan::make_plan(problem, device, "bench"));
  ImplementationTime row;
  row.name = plan->describe();
  row.chosen = true;
  row.effort.launches = 0;
  row.workspace = plan->workspace_bytes();
  PassTimes times{"all", work_of(problem), 0, {}};
  for (const problem::Pass& pass : problem.passes) {
    times.largest_operand = std::max(times.largest_operand, engines::largest_operand(pass));
    const auto answers = plan::judge(engines::candidates(device.kind()), pass, machine);
    const ImplementationTime one = described(*answers.front().candidate, pass, machine);
    row.predicted += one.predicted;
    row.effort.operations += one.effort.operations;
    row.effort.bytes += one.effort.bytes;
    row.effort.launches += one.effort.launches;
    row.effort.calls += one.effort.calls;
  }
  std::vector<Runner> runners;
  RG_TRY(auto runner, PlanRunner::make(std::move(plan), bindings));
  runners.push_back({std::move(row), std::move(runner), {}, 0});
  RG_CHECK(run_rounds(runners, options));
  times.rows.push_back(std::move(runners.front().row));
  return times;
}

}  // namespace retrograd::tools
