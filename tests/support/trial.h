// SPDX-License-Identifier: Apache-2.0
// Trial: one drawn problem with every candidate that accepts a pass of it, judged by the oracle; and a
// failing one made smaller.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "support/generator/operand_data.h"
#include "support/generator/problem_sketch.h"
#include "support/pass_runner.h"

namespace retrograd::test {

struct Failure {
  const engines::Candidate* candidate = nullptr;  // null: nobody ran
  problem::Operand result = problem::Operand::kGradInput;
  std::string what;
  bool final = false;  // the device is lost: nothing can be run after it
};

// What takes as long as all the rest.
struct Effort {
  bool all_threads = false;  // once more on the process's thread pool, for the same bits
  bool reference = true;     // which accepts everything
};

class Trial {
 public:
  explicit Trial(runtime::Device& device);  // all candidates of the device
  Trial(runtime::Device& device, std::span<const engines::Candidate* const> candidates);

  // The first failure, or nothing.
  std::optional<Failure> run(const ProblemSketch& sketch, const DataSketch& data, Effort effort);

  // A sketch and data that fail with the same candidate and gradient, and have less of everything.
  struct Smaller {
    ProblemSketch sketch;
    DataSketch data;
    Failure failure;
  };
  Smaller make_smaller(const ProblemSketch& sketch, const DataSketch& data, const Failure& failure);

  const std::map<std::string, int64_t>& runs() const { return runs_; }

 private:
  std::optional<Failure> run_those(const ProblemSketch& sketch, const DataSketch& data, const Failure* like,
                                   Effort effort);

  runtime::Device& device_;
  std::span<const engines::Candidate*const> candidates_, without_reference_;
  std::unique_ptr<PassRunner> runner_;
  runtime::ThreadPool caller_alone_{1};
  std::map<std::string, int64_t> runs_;  // by candidate
};

}  // namespace retrograd::test
