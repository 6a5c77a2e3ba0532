// SPDX-License-Identifier: Apache-2.0
// `retrograd bench --every-implementation`: whoever takes a pass, timed next to the one that is chosen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "problem/problem_text.h"
#include "tools/bench/jobs.h"
#include "tools/commands.h"
#include "tools/devices.h"
#include "tools/measure/implementation_times.h"
#include "tools/measure/operand_memory.h"
#include "tools/print_error.h"
#include "tools/sweep/figures.h"

namespace retrograd::tools {
namespace {

constexpr const char* kImplementationProblems[] = {
    "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1",
    "conv input=4x64x28x28 weight=64x1x3x3 padding=1x1 groups=64",
    "conv input=2x3x64x64 weight=32x3x7x7 stride=2x2 padding=3x3",
};

std::string to_line(const ImplementationTime& row, double fastest) {
  const std::string predicted = fmt::format("predicted {:>10.1f} us", row.predicted);
  if (row.seconds == 0)
    return fmt::format("  {:<34} {:>13}  {}  not timed: {}", row.name, "", predicted, row.skipped);
  return fmt::format("  {:<34} {:>10.1f} us  {}  {:>6.2f}x{}", row.name, row.seconds * 1e6, predicted,
                     row.seconds / fastest, row.chosen ? "  chosen" : "");
}

// Prints each pass and appends its regret; `csv` is given it as a figure of a sweep.
Status measure(const BenchJob& job, runtime::Device& device, double seconds, std::vector<double>& regrets,
               std::ostream& csv) {
  RG_TRY(const auto problem, problem::judge(job.request));
  RG_TRY(const auto memory, OperandMemory::make(problem, device));
  fmt::print("{}{}{}\n", job.name, job.name.empty() ? "" : "  ", to_text(job.request));
  for (size_t i = 0; i < problem.passes.size(); ++i) {
    RG_TRY(const auto times,
           time_implementations(problem, i, memory.bindings(), device, {.seconds = seconds, .every = true}));
    fmt::print(" {}  regret {:.2f}\n", times.pass, times.regret());
    for (const ImplementationTime& row : times.rows)
      fmt::print("{}\n", to_line(row, times.fastest().seconds));
    std::fflush(stdout);
    regrets.push_back(times.regret());
    SweepFigure figure;
    figure.index = static_cast<int64_t>(regrets.size()) - 1;
    figure.family = "given";
    figure.problem = to_text(job.request);
    figure.times = times;
    csv << sweep_csv_rows({}, figure) << std::flush;
  }
  return Status::ok();
}

}  // namespace

int bench_implementations(const BenchOptions& options) {
  const auto fail = [](const Status& status, int code) {
    print_error("retrograd bench: {}\n", status.message());
    return code;
  };
  const auto jobs = bench_jobs(options, kImplementationProblems);
  if (!jobs.is_ok()) return fail(jobs.status(), 2);
  const auto device = device_from_name(options.device);
  if (!device.is_ok()) return fail(device.status(), 1);
  std::ofstream csv;  // without a name nothing is written
  const Status not_written(Code::kInvalidArgument, fmt::format("--csv: '{}' cannot be written", options.csv));
  if (!options.csv.empty()) {
    csv.open(options.csv);
    if (!csv) return fail(not_written, 2);
    csv << sweep_csv_header() << std::flush;
  }
  std::vector<double> regrets;
  int code = 0;
  for (const BenchJob& job : jobs.value()) {
    const Status status = measure(job, *device.value(), options.seconds, regrets, csv);
    if (!status.is_ok()) code = fail(status, 1);
  }
  double logs = 0, worst = 1;
  for (double regret : regrets) {
    logs += std::log(regret);
    worst = std::max(worst, regret);
  }
  if (!regrets.empty())
    fmt::print("{} passes, regret: geometric mean {:.3f}, worst {:.2f}\n", regrets.size(),
               std::exp(logs / static_cast<double>(regrets.size())), worst);
  if (csv.is_open() && !csv) code = fail(not_written, 1);
  return code;
}

}  // namespace retrograd::tools
