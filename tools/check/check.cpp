// SPDX-License-Identifier: Apache-2.0
// `retrograd check`: every pass against sums in double, on exact and on random data.
#include <fmt/format.h>

#include <cstdio>

#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "tools/check/check_pass.h"
#include "tools/commands.h"
#include "tools/devices.h"
#include "tools/print_error.h"
#include "tools/progress.h"

namespace retrograd::tools {
namespace {

using Data = PassCheck::Data;

std::vector<const engines::Candidate*> judged_candidates(const problem::Pass& pass, bool all,
                                                         const runtime::Device& device) {
  std::vector<const engines::Candidate*> chosen;
  const Machine& machine = engines::machine_of(device);
  for (plan::Answer& answer : plan::judge(engines::candidates(device.kind()), pass, machine)) {
    if (!answer.support.accepted() ||
        !plan::make_step(answer, pass, machine, plan::workspace_limit(pass, machine)))
      continue;
    chosen.push_back(answer.candidate);
    if (!all) break;
  }
  return chosen;
}

std::string to_line(Data data, const Finding& f) {
  const char* bits = data == Data::kExact && f.ok && f.wrong == 0 && f.index.empty() ? " bit for bit" : "";
  const std::string sample = f.compared == f.elements
                                 ? fmt::format("all {} elements", f.elements)
                                 : fmt::format("{} of {} elements, spread evenly", f.compared, f.elements);
  std::string line = fmt::format("    {:<7} {:<6} {}{}", data == Data::kExact ? "exact" : "random",
                                 f.ok ? "ok" : "FAILED", sample, bits);
  if (f.wrong > 0) line += fmt::format(", {} wrong", f.wrong);
  if (!f.index.empty())
    line += fmt::format("; worst {}: {:.9g} for {:.9g}, {:.3g} ulp", f.index, f.result, f.exact, f.ulp);
  if (!f.index.empty() && data == Data::kRandom)
    line += fmt::format(", {:.3g} % of its bound", 100 * f.of_bound);
  if (!f.why.empty()) line += "; " + f.why;
  return line;
}

class Checker {
 public:
  Checker(const CheckCommandOptions& options, runtime::Device& device) : options_(options) {
    check_.device = &device;
    check_.full = options.full;
    check_.products = options.products;
    check_.seed = options.seed;
  }

  Status check(const NamedProblem& named) {
    RG_TRY(const auto random, problem::judge(named.request));
    RG_TRY(const auto exact, problem::judge(with_exact_sums(named.request)));
    fmt::print("{}{}{}\n", named.name, named.name.empty() ? "" : "  ", to_text(named.request));
    ++problems_;
    for (size_t i = 0; i < random.passes.size(); ++i) {
      const auto candidates = judged_candidates(random.passes[i], options_.all_candidates, *check_.device);
      std::vector<std::string> lines(candidates.size());
      RG_CHECK(judge(exact, i, Data::kExact, candidates, lines));
      RG_CHECK(judge(random, i, Data::kRandom, candidates, lines));
      for (size_t c = 0; c < candidates.size(); ++c)
        fmt::print("  {} by {}\n{}", name_of(random.passes[i]), candidates[c]->name(), lines[c]);
      std::fflush(stdout);
    }
    return Status::ok();
  }

  bool all_ok() const { return failed_ == 0; }
  void print_summary() const {
    fmt::print("{} problems, {} checks, {} failed\n", problems_, checks_, failed_);
  }

 private:
  Status judge(const problem::Problem& problem, size_t pass, Data data,
               const std::vector<const engines::Candidate*>& candidates, std::vector<std::string>& lines) {
    RG_TRY(const auto check, PassCheck::make(problem, pass, data, check_));
    for (size_t c = 0; c < candidates.size(); ++c) {
      const Finding finding = check->judge(*candidates[c]);
      ++checks_;
      if (!finding.ok) ++failed_;
      lines[c] += to_line(data, finding) + "\n";
    }
    return Status::ok();
  }

  const CheckCommandOptions& options_;
  CheckOptions check_;
  int problems_ = 0, checks_ = 0, failed_ = 0;
};

}  // namespace

int check(const CheckCommandOptions& options) {
  const auto problems = collect(options.problems);
  if (!problems.is_ok()) {
    print_error("retrograd check: {}\n", problems.status().message());
    return 2;
  }
  if (problems.value().empty()) {
    print_error("retrograd check: expected problems in quotes, or --shapes FILE\n");
    return 2;
  }
  const auto device = device_from_name(options.device);
  if (!device.is_ok()) {
    print_error("retrograd check: {}\n", device.status().message());
    return 1;
  }
  Checker checker(options, *device.value());
  int code = 0;
  Progress progress(problems.value().size());
  for (size_t i = 0; i < problems.value().size(); ++i) {
    progress.show(i, problems.value()[i].name);
    const Status status = checker.check(problems.value()[i]);
    progress.clear();
    if (status.is_ok()) continue;
    print_error("retrograd check: {}\n", status.message());
    code = 1;
  }
  checker.print_summary();
  return checker.all_ok() ? code : 1;
}

}  // namespace retrograd::tools
