// SPDX-License-Identifier: Apache-2.0
// The time of every implementation that takes a pass, next to what it is thought to take: what choosing is
// judged by.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engines/engine.h"
#include "problem/problem.h"
#include "tools/measure/work.h"

namespace retrograd::tools {

struct ImplementationTime {
  std::string name;
  std::string pass_case;                      // engines::tuning_case of its pass
  bool chosen = false;                        // a plan takes this one
  double seconds = 0;                         // median of a call; 0: not timed
  double predicted = 0;                       // microseconds
  engines::Effort effort;                     // operations, bytes, launches
  double arithmetic = 0;                      // microseconds of the operations at the machine's peak
  double memory = 0;                          // microseconds of the bytes at its copy bandwidth
  double calls = 0;                           // of inner kernels that one thread makes
  size_t workspace = 0;                       // bytes
  std::vector<ImplementationTime> rest = {};  // at most one: who computes what this one leaves, not timed
  std::string skipped;                        // why it was not timed
};

struct PassTimes {
  std::string pass;                      // its name
  Work work;                             // what the pass itself needs
  double largest_operand = 0;            // bytes
  std::vector<ImplementationTime> rows;  // the cheapest prediction first

  const ImplementationTime& chosen() const;
  const ImplementationTime& fastest() const;
  // Time of the chosen one over that of the fastest.
  double regret() const { return chosen().seconds / fastest().seconds; }
};

struct TimingOptions {
  double seconds = 0.02;  // an implementation
  bool every = true;      // otherwise the chosen one alone
  // Called in every round of turns, with the seconds of a turn: others that are timed next to ours.
  std::function<void(double)> others = nullptr;
};
// Of one pass of a problem whose operands are bound. Everybody is called once, then all are timed in turn.
Result<PassTimes> time_implementations(const problem::Problem& problem, size_t pass,
                                       const engines::Bindings& bindings, runtime::Device& device,
                                       const TimingOptions& options);
// All passes of a problem in one call, as a plan has chosen for them: one row, whose name is the plan's
// description.
Result<PassTimes> time_whole_call(const problem::Problem& problem, const engines::Bindings& bindings,
                                  runtime::Device& device, const TimingOptions& options);

// What is known of an implementation before it is timed.
ImplementationTime described(const engines::Candidate& candidate, const problem::Pass& pass,
                             const Machine& machine);

// The problem with one of its passes alone.
problem::Problem with_pass(const problem::Problem& problem, size_t pass);

}  // namespace retrograd::tools
