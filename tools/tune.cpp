// SPDX-License-Identifier: Apache-2.0
// `retrograd tune`: a sweep with every implementation, and the table of efficiencies that fits it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <random>

#include "engines/machines.h"
#include "tools/caches.h"
#include "tools/devices.h"
#include "tools/machine_text.h"
#include "tools/sweep_figures.h"
#include "tools/tuning_fit.h"

namespace retrograd::tools {
namespace {

FitPass fit_pass(const SweepFigure& figure) {
  FitPass pass;
  for (const ImplementationTime& row : figure.times.rows)
    if (row.seconds > 0)
      pass.push_back({row.name, row.arithmetic, row.memory, row.effort.launches, row.seconds * 1e6});
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

std::string comments(const TuneOptions& options, const runtime::Device& device, size_t passes) {
  const std::time_t now = std::time(nullptr);
  const bool on_cpu = device.kind() == runtime::DeviceKind::kCpu;
  return fmt::format(
      "# Efficiencies of implementations: name, share of the peak, share of the copy bandwidth, microseconds "
      "to start.\n"
      "# RETROGRAD_TUNING=FILE uses it (docs/dispatch.md).\n"
      "# machine: {}{}\n"
      "# date: {:%Y-%m-%d}, version {}\n"
      "# command: retrograd tune --device {} --seed {} --count {} --seconds {}; {} passes\n",
      on_cpu ? processor_name() + "; " : "", text_of(engines::machine_of(device)), fmt::gmtime(now),
      RETROGRAD_VERSION, options.device, options.seed, options.count, options.seconds, passes);
}

// How well a table does that has not seen a quarter of the passes.
void print_regret(const std::vector<FitPass>& passes, const engines::Tuning& before,
                  const engines::Tuning& after) {
  std::mt19937 random(2);
  std::vector<FitPass> seen, unseen;
  for (const FitPass& pass : passes) (random() % 4 == 3 ? unseen : seen).push_back(pass);
  const engines::Tuning of_seen = fit(seen, before).tuning;
  fmt::print("regret, geometric mean: {:.3f} before, {:.3f} after, of {} passes\n",
             mean_regret(before, passes), mean_regret(after, passes), passes.size());
  if (!unseen.empty())
    fmt::print("of {} passes that were left out of a fit: {:.3f} before, {:.3f} after\n", unseen.size(),
               mean_regret(before, unseen), mean_regret(of_seen, unseen));
}

void print_errors(const std::vector<FitPass>& passes, const engines::Tuning& before,
                  const engines::Tuning& after) {
  std::map<std::string, int> figures;
  for (const FitPass& pass : passes)
    for (const FitFigure& figure : pass) ++figures[figure.name];
  fmt::print("{:<34} {:>7}  typical error of its cost\n", "implementation", "figures");
  for (const auto& [name, count] : figures)
    fmt::print("{:<34} {:>7}  {:.2f}x before, {:.2f}x after\n", name, count,
               typical_error(before, passes, name), typical_error(after, passes, name));
}

}  // namespace

int tune(const TuneOptions& options) {
  const auto fail = [](const Status& status) {
    fmt::print(stderr, "retrograd tune: {}\n", status.message());
    return status.code() == Code::kInvalidArgument ? 2 : 1;
  };
  std::ofstream out;
  if (!options.out.empty()) {
    out.open(options.out);
    if (!out)
      return fail({Code::kInvalidArgument, fmt::format("--out: '{}' cannot be written", options.out)});
  }
  const auto device = device_from_name(options.device);
  if (!device.is_ok()) return fail(device.status());
  const auto passes = measure(options);
  if (!passes.is_ok()) return fail(passes.status());
  const engines::Tuning& before = engines::tuning_for(engines::machine_of(*device.value()));
  const Fit fitted = fit(passes.value(), before);
  const engines::Tuning& after = fitted.tuning;
  const std::string table = comments(options, *device.value(), passes.value().size()) + after.to_text();
  if (out.is_open()) {
    out << table << std::flush;
    if (!out) return fail({Code::kInternal, fmt::format("--out: '{}' cannot be written", options.out)});
  } else {
    fmt::print("{}", table);
  }
  print_errors(passes.value(), before, after);
  fmt::print("{}\n", fitted.how);
  print_regret(passes.value(), before, after);
  return 0;
}

}  // namespace retrograd::tools
