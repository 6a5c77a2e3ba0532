// SPDX-License-Identifier: Apache-2.0
// Plan: which steps, in which order, with how much workspace. It holds no data addresses and may run many
// times at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engines/engine.h"
#include "problem/problem.h"
#include "runtime/device.h"

namespace retrograd::plan {

using engines::Bindings;

// Which of those that take a pass computes it: the first of the list, or the cheapest.
enum class Order : unsigned char { kAsGiven, kByCost };

class Plan {
 public:
  runtime::Device& device() const { return *device_; }
  // Enough for any alignment of the address; 0 when none is needed.
  size_t workspace_bytes() const { return workspace_bytes_; }
  // What its steps are thought to take together.
  double microseconds() const { return microseconds_; }
  // "grad_input:reference grad_bias:cpu.chunked_bias": which engine took which pass.
  std::string describe() const;

  // Fails when a step's result is bound to null: for callers that have said which gradients they want
  // already.
  Status require_results(const Bindings& bindings) const;

  // Puts the steps on `stream` and returns; a step whose result is bound to null is skipped. Before that it
  // judges the stream's device, the workspace, operands that a step reads and that are null, and bindings
  // into blocks of ours that are too small. Allocates nothing, and waits for nothing but room in a full
  // stream. A tiny plan that finds the stream idle has run when this returns.
  static Status execute(std::shared_ptr<const Plan> plan, const Bindings& bindings, void* workspace,
                        size_t workspace_size, runtime::Stream& stream);

 private:
  friend Result<std::shared_ptr<const Plan>> make_plan(const problem::Problem&, runtime::Device&,
                                                       std::string_view,
                                                       std::span<const engines::Candidate* const>,
                                                       std::optional<size_t>, Order);
  struct Entry {
    std::unique_ptr<const engines::Step> step;
    const char* engine;
    std::string_view pass;  // its name
    problem::Operand result;
    unsigned touched;  // a bit for each operand that is read or written
  };
  Status check_workspace(const void* workspace, size_t size) const;
  Status check_bindings(const Bindings& bindings) const;
  void run(const Bindings& bindings, void* workspace, runtime::ExecutionContext& context) const;

  runtime::Device* device_ = nullptr;
  std::vector<Entry> entries_;
  size_t workspace_bytes_ = 0;
  double microseconds_ = 0;
  std::array<problem::OperandFacts, problem::kOperandCount> operands_;
  bool brief_ = false;       // done in less time than another thread needs to take it over
  std::string call_record_;  // what RETROGRAD_VERBOSE=call prints behind the time; empty when it is off
};

// Asks the candidates of the device and takes the cheapest for each pass; RETROGRAD_VERBOSE=dispatch prints
// what each said. One whose step cannot keep within workspace_limit() is passed over; the last one needs
// nothing. `operation` is the name of the C operator, for the log.
Result<std::shared_ptr<const Plan>> make_plan(const problem::Problem& problem, runtime::Device& device,
                                              std::string_view operation);
// The most that a step of the pass may need: RETROGRAD_WORKSPACE_LIMIT, or where it is not set, on a CPU, 1.5
// times the pass's largest operand and 8 MB. Where bits are portable there is none: it would have them hang
// on how wide vectors are.
size_t workspace_limit(const problem::Pass& pass, const Machine& machine);
// The same with a list and a limit of the caller's own, for tests; nullopt: workspace_limit().
Result<std::shared_ptr<const Plan>> make_plan(const problem::Problem& problem, runtime::Device& device,
                                              std::string_view operation,
                                              std::span<const engines::Candidate* const> candidates,
                                              std::optional<size_t> limit = SIZE_MAX,
                                              Order order = Order::kAsGiven);

// What one candidate answers to a pass: that it takes it and what it is thought to cost, or why not.
struct Answer {
  const engines::Candidate* candidate;
  engines::Support support;
  double microseconds;  // infinite where it does not
  std::string text(bool chosen) const;
};
// All of them, the cheapest first; of equals in the order of the list.
std::vector<Answer> judge(std::span<const engines::Candidate* const> candidates, const problem::Pass& pass,
                          const Machine& machine);
// The step of an answer that accepts. On a CPU, one that needs more workspace than the limit has fewer
// threads, and one that does with a single thread is cut into slices: so bits do not depend on the number of
// threads. Null, with the reason in the answer, where that does not help.
std::unique_ptr<const engines::Step> make_step(Answer& answer, const problem::Pass& pass,
                                               const Machine& machine, size_t limit);

}  // namespace retrograd::plan
