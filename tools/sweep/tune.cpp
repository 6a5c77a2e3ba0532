// SPDX-License-Identifier: Apache-2.0
// `retrograd tune`: a sweep with every implementation, and the table of efficiencies that fits it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "tools/devices.h"
#include "tools/measure/caches.h"
#include "tools/measure/percentiles.h"
#include "tools/print_error.h"
#include "tools/sweep/figures.h"
#include "tools/sweep/tuning_fit.h"

namespace retrograd::tools {
namespace {

FitFigure fit_figure(const ImplementationTime& row, double microseconds) {
  FitFigure figure{row.name, row.arithmetic, row.memory, row.effort.launches, row.calls, microseconds};
  figure.pass_case = row.pass_case;
  for (const ImplementationTime& rest : row.rest) figure.rest.push_back(fit_figure(rest, 0));
  return figure;
}

FitPass fit_pass(const SweepFigure& figure) {
  FitPass pass{{}, figure.problem};
  for (const ImplementationTime& row : figure.times.rows)
    if (row.seconds > 0) pass.figures.push_back(fit_figure(row, row.seconds * 1e6));
  return pass;
}

// Most as a sweep draws them; some so small that what a start takes can be seen, some where FP32 may be
// multiplied with less precision.
Result<std::vector<FitPass>> measure(const TuneOptions& options) {
  std::vector<FitPass> passes;
  const auto add = [&](const SweepOptions& sweep) {
    if (sweep.count == 0) return Status::ok();
    return measure_sweep(sweep, [&](const SweepFigure& figure) { passes.push_back(fit_pass(figure)); })
        .status();
  };
  SweepOptions sweep;
  sweep.seed = options.seed;
  sweep.device = options.device;
  sweep.seconds = options.seconds;
  sweep.gflop = options.gflop;
  sweep.every = true;
  SweepOptions small = sweep, reduced = sweep;
  small.seed = options.seed + 1;
  small.count = options.count / 5;
  small.gflop = options.device == "cpu" ? 0.002 : 0.05;
  reduced.seed = options.seed + 2;
  reduced.count = options.count / 5;
  reduced.dtype = "f32";
  reduced.math_mode = 1;
  sweep.count = options.count - small.count - reduced.count;
  RG_CHECK(add(sweep));
  RG_CHECK(add(small));
  RG_CHECK(add(reduced));
  return passes;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// The figure of a line of a sweep's --csv, with the effort of today's implementations on that machine; null
// where the implementation is gone, or does not take the pass any more.
std::optional<FitFigure> figure_of(const problem::Problem& problem, const std::string& pass_name,
                                   const std::string& implementation, double microseconds,
                                   const Machine& machine) {
  const auto kind =
      machine.kind == Machine::Kind::kCpu ? runtime::DeviceKind::kCpu : runtime::DeviceKind::kCuda;
  for (const problem::Pass& pass : problem.passes)
    for (const engines::Candidate* candidate : engines::candidates(kind))
      if (name_of(pass) == pass_name && candidate->name() == implementation &&
          candidate->supports(pass, machine).accepted())
        return fit_figure(described(*candidate, pass, machine), microseconds);
  return std::nullopt;
}

std::optional<double> time_of(const std::string& cell) {
  constexpr double kMost = 1e15;  // years
  double microseconds = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), microseconds);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole && microseconds > 0 && microseconds < kMost ? std::optional(microseconds) : std::nullopt;
}

// Every run of lines with the same problem and pass is a pass.
Result<std::vector<FitPass>> read_figures(const TuneOptions& options, const std::vector<Machine>& machines) {
  enum Column : size_t { kPass = 3, kImplementation = 4, kMicroseconds = 6 };
  // Files of older versions have other columns in between.
  constexpr std::string_view kFirst = "seed,index,family,pass,implementation,chosen,measured_us,",
                             kLast = ",problem";
  std::vector<FitPass> passes;
  for (size_t i = 0; i < options.from.size(); ++i) {
    const std::string& path = options.from[i];
    const Machine& machine = machines[machines.size() == 1 ? 0 : i];
    std::ifstream file(path);
    if (!file) return Status(Code::kInvalidArgument, fmt::format("--from: '{}' cannot be read", path));
    std::string line, last;
    std::getline(file, line);  // the names of the columns
    if (!line.starts_with(kFirst) || !line.ends_with(kLast))
      return Status(Code::kInvalidArgument, fmt::format("--from: '{}' is not what sweep --csv writes", path));
    const size_t columns = cells_of(line).size();
    std::optional<problem::Problem> problem;
    for (int number = 2; std::getline(file, line); ++number) {
      const std::vector<std::string> cells = cells_of(line);
      if (cells.size() != columns)
        return Status(Code::kInvalidArgument, fmt::format("--from: '{}': '{}' lacks columns", path, line));
      const std::string key = cells[kPass] + cells.back();
      if (key != last) {
        last = key;
        passes.emplace_back().problem = cells.back();
        RG_TRY(const problem::Request request, problem::parse_request(cells.back()));
        RG_TRY(problem, problem::make_problem(request));
      }
      const auto microseconds = time_of(cells[kMicroseconds]);
      if (!microseconds)
        return Status(Code::kInvalidArgument,
                      fmt::format("--from: '{}' line {}: '{}' is not a time in microseconds", path, number,
                                  cells[kMicroseconds]));
      if (auto figure = figure_of(*problem, cells[kPass], cells[kImplementation], *microseconds, machine))
        passes.back().figures.push_back(std::move(*figure));
    }
  }
  std::erase_if(passes, [](const FitPass& pass) { return pass.figures.empty(); });
  return passes;
}

std::string comments(const TuneOptions& options, const std::string& where, size_t passes) {
  const std::time_t now = std::time(nullptr);
  const std::string how = options.from.empty()
                              ? fmt::format("--device {} --seed {} --count {} --seconds {}", options.device,
                                            options.seed, options.count, options.seconds)
                              : fmt::format("--machine {} --from {}", fmt::join(options.machines, " "),
                                            fmt::join(options.from, " "));
  return fmt::format(
      "# Efficiencies of implementations: name, share of the peak, share of the copy bandwidth, microseconds "
      "to start, nanoseconds a call.\n"
      "# RETROGRAD_TUNING=FILE uses it (docs/dispatch.md).\n"
      "# machine: {}\n"
      "# date: {:%Y-%m-%d}, version {}\n"
      "# command: retrograd tune {}; {} passes\n",
      where, fmt::gmtime(now), RETROGRAD_VERSION, how, passes);
}

// How well a table does that has not seen a quarter of the passes, and where it does worst.
void print_regret(const std::vector<FitPass>& passes, const engines::Tuning& before,
                  const engines::Tuning& after) {
  std::mt19937 random(2);
  std::vector<FitPass> seen, unseen;
  for (const FitPass& pass : passes) (random() % 4 == 3 ? unseen : seen).push_back(pass);
  const auto line = [](std::string_view name, const engines::Tuning& tuning, const std::vector<FitPass>& of) {
    if (!of.empty()) fmt::print("{}\n", percentiles_line(name, regrets(tuning, of), Worst::kLargest));
  };
  fmt::print("{}\n", percentiles_header("regret"));
  line("before", before, passes);
  line("after", after, passes);
  line("left out of a fit, before", before, unseen);
  line("left out of a fit, after", fit(seen, before).tuning, unseen);

  constexpr size_t kShown = 20;
  std::vector<std::pair<double, const FitPass*>> worst;
  for (const FitPass& pass : passes)
    if (const double r = regret(after, pass); r > 1) worst.emplace_back(r, &pass);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  worst.resize(std::min(worst.size(), kShown));
  for (const auto& [r, pass] : worst) {
    const auto fastest =
        std::min_element(pass->figures.begin(), pass->figures.end(),
                         [](const auto& a, const auto& b) { return a.measured < b.measured; });
    const FitFigure& chosen = chosen_by(after, *pass);
    fmt::print("  {:>8.3f}  \"{}\"  chosen {} {:.1f} us, fastest {} {:.1f} us\n", r, pass->problem,
               chosen.name, chosen.measured, fastest->name, fastest->measured);
  }
}

void print_errors(const std::vector<FitPass>& passes, const engines::Tuning& before,
                  const engines::Tuning& after) {
  std::map<std::string, int> figures;
  for (const FitPass& pass : passes)
    for (const FitFigure& figure : pass.figures) ++figures[figure.name];
  fmt::print("{:<34} {:>7}  typical error of its cost\n", "implementation", "figures");
  for (const auto& [name, count] : figures)
    fmt::print("{:<34} {:>7}  {:.2f}x before, {:.2f}x after\n", name, count,
               typical_error(before, passes, name), typical_error(after, passes, name));
}

}  // namespace

int tune(const TuneOptions& options) {
  const auto fail = [](const Status& status) {
    print_error("retrograd tune: {}\n", status.message());
    return status.code() == Code::kInvalidArgument ? 2 : 1;
  };
  const auto not_written = [&](Code code) {
    return fail({code, fmt::format("--out: '{}' cannot be written", options.out)});
  };
  // Told before anything is measured; what is there stays until there is a table.
  if (!options.out.empty() && !std::ofstream(options.out, std::ios::app))
    return not_written(Code::kInvalidArgument);
  std::vector<Machine> machines;
  std::string where;
  for (const std::string& name : options.machines) {
    const auto named = named_machine(name);
    if (!named)
      return fail({Code::kInvalidArgument,
                   fmt::format("--machine: '{}' is not one of {}", name, fmt::join(machine_names(), ", "))});
    machines.push_back(*named);
    where += (where.empty() ? "" : "; ") + text_of(*named);
  }
  if (options.from.empty()) {
    if (!machines.empty())
      return fail(
          {Code::kInvalidArgument, "--machine says what the figures of --from are of; there is no --from"});
    const auto device = device_from_name(options.device);
    if (!device.is_ok()) return fail(device.status());
    machines = {engines::machine_of(*device.value())};
    where = (machines[0].kind == Machine::Kind::kCpu ? processor_name() + "; " : "") + text_of(machines[0]);
  } else if (machines.size() != 1 && machines.size() != options.from.size()) {
    return fail({Code::kInvalidArgument,
                 fmt::format("--from needs --machine, one for each file or one for all, of {}; it is '{}'",
                             fmt::join(machine_names(), ", "), fmt::join(options.machines, " "))});
  }
  const auto passes = options.from.empty() ? measure(options) : read_figures(options, machines);
  if (!passes.is_ok()) return fail(passes.status());
  const engines::Tuning& before = engines::tuning_for(machines[0]);
  const Fit fitted = fit(passes.value(), before);
  const engines::Tuning& after = fitted.tuning;
  const std::string table = comments(options, where, passes.value().size()) + after.to_text();
  if (options.out.empty()) {
    fmt::print("{}", table);
  } else if (!(std::ofstream(options.out) << table << std::flush)) {
    return not_written(Code::kInternal);
  }
  print_errors(passes.value(), before, after);
  fmt::print("{}\n", fitted.how);
  print_regret(passes.value(), before, after);
  return 0;
}

}  // namespace retrograd::tools
