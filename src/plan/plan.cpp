// SPDX-License-Identifier: Apache-2.0
// Chooses an engine for each pass, and runs the steps in order on a stream.
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/log.h"
#include "base/settings.h"
#include "engines/cost.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "engines/slices.h"
#include "problem/problem_text.h"
#include "runtime/memory.h"

namespace retrograd::plan {
namespace {

using problem::Operand;

constexpr size_t kWorkspaceAlignment = 64;

// Products and additions of all passes that are certainly done before a sleeping thread has woken up, about
// 40 us later (`retrograd bench --calls`): 10 to 20 us.
constexpr double kBriefOperations = 1 << 18;

// What a plan asks for so that a step finds its bytes aligned, whatever the address.
size_t with_alignment(size_t step_bytes) {
  return step_bytes == 0 ? 0 : step_bytes + kWorkspaceAlignment - 1;
}

std::vector<Answer> judge_in_order(std::span<const engines::Candidate* const> candidates,
                                   const problem::Pass& pass, const Machine& machine) {
  std::vector<Answer> answers;
  answers.reserve(candidates.size());
  for (const engines::Candidate* candidate : candidates) {
    engines::Support support = candidate->supports(pass, machine);
    const double microseconds = support.accepted() ? engines::cost(*candidate, pass, machine)
                                                   : std::numeric_limits<double>::infinity();
    answers.push_back({candidate, std::move(support), microseconds});
  }
  return answers;
}

struct Choice {
  const engines::Candidate* candidate = nullptr;
  std::unique_ptr<const engines::Step> step;
  double microseconds = 0;
};
// The first of the answers that accepts and keeps within the limit.
Choice choose(std::string_view operation, const problem::Pass& pass, const Machine& machine,
              std::vector<Answer> answers, size_t limit) {
  Choice choice;
  for (Answer& answer : answers) {
    if (!answer.support.accepted()) continue;
    choice.step = make_step(answer, pass, machine, limit);
    if (choice.step == nullptr) continue;
    choice.candidate = answer.candidate;
    choice.microseconds = answer.microseconds;
    break;
  }
  if (log::enabled(log::Topic::kDispatch))
    for (const Answer& answer : answers)
      log::write(log::Topic::kDispatch,
                 fmt::format("op={} pass={} candidate={} {}", operation, name_of(pass),
                             answer.candidate->name(), answer.text(answer.candidate == choice.candidate)));
  return choice;
}

// Slices of a pass, one after the other: each reads the operand again that all have in common.
constexpr int64_t kMostSlices = 16;

// The candidate's step, in slices, with as many threads as keep it within the limit; null where one is too
// many.
std::unique_ptr<const engines::Step> fitting_step(const engines::Candidate& candidate,
                                                  const problem::Pass& pass, const Machine& machine,
                                                  int64_t slices, size_t limit) {
  Machine narrow = machine;
  const auto with = [&](int threads) {
    narrow.cpu.threads = threads;
    auto step = slices == 1 ? candidate.make_step(pass, narrow)
                            : engines::make_sliced_step(candidate, pass, narrow, slices);
    return step != nullptr && with_alignment(step->workspace_bytes()) <= limit ? std::move(step) : nullptr;
  };
  auto best = with(1);
  if (best == nullptr) return nullptr;
  for (int fits = 1, too_many = machine.cpu.threads + 1; too_many - fits > 1;) {
    const int threads = fits + (too_many - fits) / 2;
    auto step = with(threads);
    (step == nullptr ? too_many : fits) = threads;
    if (step != nullptr) best = std::move(step);
  }
  return best;
}

unsigned bit_of(Operand operand) { return 1u << static_cast<unsigned>(operand); }

unsigned touched_operands(const problem::Pass& pass) {
  unsigned touched = bit_of(result_of(pass).operand);
  for (int i = 0; i < problem::kOperandCount; ++i)
    if (const auto operand = static_cast<Operand>(i); reads(pass, operand)) touched |= bit_of(operand);
  return touched;
}

std::byte* align(void* workspace) {
  const auto address = reinterpret_cast<uintptr_t>(workspace);
  return static_cast<std::byte*>(workspace) + (-address & (kWorkspaceAlignment - 1));
}

}  // namespace

std::string Plan::describe() const {
  std::string text;
  for (const Entry& entry : entries_)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", entry.pass, entry.engine);
  return text.empty() ? "nothing" : text;
}

Status Plan::check_workspace(const void* workspace, size_t size) const {
  if (workspace_bytes_ == 0) return Status::ok();
  if (workspace == nullptr)
    return Status(Code::kNullWorkspace, "workspace is null, expected {} bytes", workspace_bytes_);
  if (size < workspace_bytes_)
    return Status(Code::kShortWorkspace, "the workspace has {} bytes, expected at least {} bytes", size,
                  workspace_bytes_);
  return runtime::AllocationTable::instance().check_range(workspace, workspace_bytes_, "workspace");
}

Status Plan::require_results(const Bindings& bindings) const {
  for (const Entry& entry : entries_)
    if (bindings[entry.result] == nullptr)
      return Status(Code::kNullArgument, "{} has no data: its address is null, but it was asked for",
                    operands_[static_cast<size_t>(entry.result)].name);
  return Status::ok();
}

Status Plan::check_bindings(const Bindings& bindings) const {
  unsigned touched = 0;
  for (const Entry& entry : entries_)
    if (bindings[entry.result] != nullptr) touched |= entry.touched;
  for (int i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<Operand>(i);
    const problem::OperandFacts& facts = operands_[static_cast<size_t>(i)];
    if ((touched & bit_of(operand)) == 0 || facts.end_byte == facts.lowest_byte) continue;
    const void* address = bindings[operand];
    if (address == nullptr)
      return Status(Code::kNullArgument,
                    "{} has no data: its address is null, but a result that was asked for needs it",
                    facts.name);
    const auto block = runtime::AllocationTable::instance().find(address);
    if (!block) continue;  // not ours: nothing is known of it
    const auto at = static_cast<const std::byte*>(address) - block->base;
    if (at + facts.lowest_byte < 0 || at + facts.end_byte > static_cast<int64_t>(block->bytes))
      return Status(Code::kBadStrides, "{} touches bytes {} to {} of a block that was allocated with {}",
                    facts.name, at + facts.lowest_byte, at + facts.end_byte - 1, block->bytes);
  }
  return Status::ok();
}

Status Plan::execute(std::shared_ptr<const Plan> plan, const Bindings& bindings, void* workspace,
                     size_t workspace_size, runtime::Stream& stream) {
  if (&stream.device() != plan->device_)
    return Status(Code::kWrongDevice, "stream belongs to {}, the operator was planned for {}",
                  stream.device().label(), plan->device_->label());
  RG_CHECK(plan->check_workspace(workspace, workspace_size));
  RG_CHECK(plan->check_bindings(bindings));
  if (plan->entries_.empty()) return Status::ok();
  const bool brief = plan->brief_;
  runtime::Task task([plan = std::move(plan), bindings, workspace](runtime::ExecutionContext& context) {
    plan->run(bindings, workspace, context);
  });
  return brief ? stream.submit_brief(std::move(task)) : stream.submit(std::move(task));
}

void Plan::run(const Bindings& bindings, void* workspace, runtime::ExecutionContext& context) const {
  const auto start = std::chrono::steady_clock::now();
  engines::Conversions made;  // what the last step read, at the workspace's beginning
  for (const Entry& entry : entries_) {
    if (bindings[entry.result] == nullptr) continue;
    const engines::Conversions wanted = entry.step->conversions();
    run_converted(*entry.step, count_made(wanted, made), bindings, align(workspace), context);
    made = wanted;
  }
  if (call_record_.empty()) return;
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  // On a stream's thread nobody catches; a record that finds no memory is lost.
  try {
    log::write(log::Topic::kCall, fmt::format("us={:.3f} {}", elapsed.count(), call_record_));
  } catch (...) {
  }
}

std::string Answer::text(bool chosen) const {
  if (!support.accepted()) return fmt::format("declined: {}", support.reason());
  return fmt::format("{} us={:.1f}", chosen ? "chosen" : "accepted", microseconds);
}

std::vector<Answer> judge(std::span<const engines::Candidate* const> candidates, const problem::Pass& pass,
                          const Machine& machine) {
  std::vector<Answer> answers = judge_in_order(candidates, pass, machine);
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Answer& a, const Answer& b) { return a.microseconds < b.microseconds; });
  return answers;
}

std::unique_ptr<const engines::Step> make_step(Answer& answer, const problem::Pass& pass,
                                               const Machine& machine, size_t limit) {
  auto step = answer.candidate->make_step(pass, machine);
  const size_t bytes = with_alignment(step->workspace_bytes());
  if (bytes <= limit) return step;
  if (machine.kind == Machine::Kind::kCpu)
    for (int64_t slices = 1; slices <= kMostSlices; slices *= 2)
      if ((step = fitting_step(*answer.candidate, pass, machine, slices, limit)) != nullptr) return step;
  answer.support = engines::Support::no("needs {} bytes of workspace, the limit is {}", bytes, limit);
  return nullptr;
}

size_t workspace_limit(const problem::Pass& pass, const Machine& machine) {
  const Settings& set = settings();
  if (set.workspace_limit != SIZE_MAX || machine.kind != Machine::Kind::kCpu || set.bits == Bits::kPortable)
    return set.workspace_limit;
  constexpr double kOfLargest = 1.5, kBeyond = 8e6;
  return static_cast<size_t>(std::min(kOfLargest * engines::largest_operand(pass) + kBeyond, 1e18));
}

Result<std::shared_ptr<const Plan>> make_plan(const problem::Problem& problem, runtime::Device& device,
                                              std::string_view operation) {
  return make_plan(problem, device, operation, engines::candidates(device.kind()), std::nullopt,
                   Order::kByCost);
}

Result<std::shared_ptr<const Plan>> make_plan(const problem::Problem& problem, runtime::Device& device,
                                              std::string_view operation,
                                              std::span<const engines::Candidate* const> candidates,
                                              std::optional<size_t> limit, Order order) {
  // Made now: execute() asks it, and allocates nothing.
  runtime::AllocationTable::instance();
  auto plan = std::make_shared<Plan>();
  plan->device_ = &device;
  plan->operands_ = problem.operands;
  plan->entries_.reserve(problem.passes.size());
  double operations = 0;
  const Machine& machine = engines::machine_of(device);
  for (const problem::Pass& pass : problem.passes) {
    auto [candidate, step, microseconds] =
        choose(operation, pass, machine,
               order == Order::kByCost ? judge(candidates, pass, machine)
                                       : judge_in_order(candidates, pass, machine),
               limit.value_or(workspace_limit(pass, machine)));
    if (candidate == nullptr)
      return Status(Code::kInternal, "no engine of {} accepts the pass {}", device.label(), name_of(pass));
    plan->workspace_bytes_ = std::max(plan->workspace_bytes_, with_alignment(step->workspace_bytes()));
    plan->entries_.push_back(
        {std::move(step), candidate->name(), name_of(pass), result_of(pass).operand, touched_operands(pass)});
    plan->microseconds_ += microseconds;
    operations += engines::effort_of(pass).operations;
  }
  plan->brief_ = operations <= kBriefOperations;
  if (log::enabled(log::Topic::kCall))
    plan->call_record_ = fmt::format("op={} device={} steps=\"{}\" problem=\"{}\"", operation, device.label(),
                                     plan->describe(), to_text(problem.request));
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace retrograd::plan
