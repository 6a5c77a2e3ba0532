// SPDX-License-Identifier: Apache-2.0
// `retrograd explain`: judges one problem and tells how it would be computed, here or on a machine of a name.
#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engines/machines.h"
#include "engines/registry.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "problem/problem.h"
#include "problem/problem_text.h"
#include "problem/product_rules.h"
#include "runtime/thread_pool.h"
#include "tools/commands.h"
#include "tools/devices.h"
#include "tools/explain/math_mode.h"
#include "tools/print_error.h"
#include "tools/problems/problems.h"

namespace retrograd::tools {
namespace {

struct Place {
  runtime::Device* device;  // null: a machine that is not here
  runtime::DeviceKind kind;
  Machine machine;
};
Result<Place> place_of(const ExplainOptions& options) {
  if (options.machine.empty()) {
    RG_TRY(runtime::Device* const device, device_from_name(options.device));
    return Place{device, device->kind(), engines::machine_of(*device)};
  }
  auto machine = named_machine(options.machine);
  if (!machine)
    return Status(Code::kInvalidArgument, fmt::format("--machine: '{}' is not one of {}", options.machine,
                                                      fmt::join(machine_names(), ", ")));
  const auto kind =
      machine->kind == Machine::Kind::kGpu ? runtime::DeviceKind::kCuda : runtime::DeviceKind::kCpu;
  if (engines::candidates(kind).empty())
    return Status(Code::kNoDevice,
                  fmt::format("--machine {}: this build has no engines for NVIDIA GPUs", options.machine));
  return Place{nullptr, kind, std::move(*machine)};
}

// A problem of one product is one of aclnn.
void follow(problem::Request& request, Product product) {
  if (auto* conv = std::get_if<problem::ConvRequest>(&request)) {
    conv->math.product = product;
    if (!conv->rules.one_dtype) {
      conv->rules.max_groups = problem::kAclnnMaxGroups;
      conv->rules.asymmetric_any_rank = false;
    }
  }
  if (auto* tbc = std::get_if<problem::ConvTbcRequest>(&request)) tbc->math.product = product;
}

// "keeps", "breaks", or "-" where the product has no such rule.
const char* standing(std::string_view rule, const problem::Request& request, Product product,
                     const std::vector<problem::BrokenRule>& broken) {
  for (const problem::BrokenRule& each : broken)
    if (each.rule->name == rule) return "breaks";
  for (const problem::ProductRule& each : problem::product_rules())
    if (each.name == rule && each.products.has(product) && concerns(each, request)) return "keeps";
  return "-";
}

void print_trimmed(std::string_view row) { fmt::print("{}\n", row.substr(0, row.find_last_not_of(' ') + 1)); }

// The rules as rows, the products as columns, then a sentence for each that is broken.
bool tell_all_rules(const problem::Request& request) {
  std::vector<std::vector<problem::BrokenRule>> broken;
  bool any = false;
  std::string row = fmt::format("{:<22}", "rules");
  for (const Product product : kProducts) {
    row += fmt::format(" {:<9}", name_of(product));
    broken.push_back(broken_rules(request, product));
    any |= !broken.back().empty();
  }
  print_trimmed(row);
  std::string_view last;
  for (const problem::ProductRule& rule : problem::product_rules()) {
    if (rule.name == last || !concerns(rule, request)) continue;
    last = rule.name;
    row = fmt::format("  {:<20}", rule.name);
    for (size_t i = 0; i < broken.size(); ++i)
      row += fmt::format(" {:<9}", standing(rule.name, request, kProducts[i], broken[i]));
    print_trimmed(row);
  }
  for (const auto& of_product : broken)
    for (const problem::BrokenRule& each : of_product) fmt::print("refused    {}\n", each.sentence);
  return !any;
}

bool tell_rules(const problem::Request& request, Product product) {
  const auto broken = broken_rules(request, product);
  fmt::print("rules      {}: {}\n", name_of(product),
             broken.empty() ? "all are kept" : fmt::format("{} broken", broken.size()));
  for (const problem::BrokenRule& each : broken) fmt::print("refused    {}\n", each.sentence);
  return broken.empty();
}

// Whether the rules asked for are kept; a single product's are followed from then on.
bool judge_rules(const std::string& rules, problem::Request& request) {
  if (rules.empty()) return true;
  if (std::holds_alternative<problem::AvgPoolRequest>(request)) {
    fmt::print("rules      products have none for pooling\n");
    return true;
  }
  if (rules == "all") return tell_all_rules(request);
  const Product product = *product_from_name(rules);
  follow(request, product);
  return tell_rules(request, product);
}

}  // namespace

int explain(const ExplainOptions& options) {
  auto request = problem::parse_request(options.problem);
  if (!request.is_ok()) {
    print_error("{}\n", request.status().message());
    return 2;
  }
  apply_settings(request.value());
  const auto where = place_of(options);
  if (!where.is_ok()) {
    print_error("retrograd explain: {}\n", where.status().message());
    return where.status().code() == Code::kInvalidArgument ? 2 : 1;
  }
  fmt::print("problem    {}\n", to_text(request.value()));
  const bool rules_kept = judge_rules(options.rules, request.value());
  if (!rules_kept && options.rules != "all") return 1;
  auto problem = problem::make_problem(request.value());
  if (!problem.is_ok()) {
    print_error("refused    {}\n", problem.status().message());
    return 1;
  }
  for (const std::string& warning : problem.value().warnings) fmt::print("warning    {}\n", warning);
  if (const std::string math = effect_of_math_mode(problem.value()); !math.empty())
    fmt::print("math       {}\n", math);
  const auto& [device, kind, machine] = where.value();
  size_t workspace = 0;
  std::unique_ptr<const engines::Step> before;
  for (const problem::Pass& pass : problem.value().passes) {
    plan::Explanation told = plan::explain_pass(pass, kind, machine, before.get());
    before = std::move(told.step);
    fmt::print("{}", told.text);
    workspace = std::max(workspace, told.workspace_bytes);
  }
  if (device == nullptr) {
    fmt::print("machine    {}, planned for only\nworkspace  {} bytes\n", text_of(machine), workspace);
    return 0;
  }
  const auto plan = plan::make_plan(problem.value(), *device, "explain");
  if (!plan.is_ok()) {
    print_error("{}\n", plan.status().message());
    return 1;
  }
  fmt::print("device     {}, {}\nworkspace  {} bytes\n", device->label(),
             kind == runtime::DeviceKind::kCpu
                 ? fmt::format("{} threads, {}", runtime::ThreadPool::instance().threads(),
                               kernels::cpu::target_name())
                 : text_of(machine),
             plan.value()->workspace_bytes());
  return rules_kept ? 0 : 1;
}

}  // namespace retrograd::tools
