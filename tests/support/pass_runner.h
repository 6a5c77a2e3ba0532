// SPDX-License-Identifier: Apache-2.0
// PassRunner: runs one pass with one candidate on operands that lie where a DataSketch says. On the CPU they
// lie between forbidden pages, on a GPU between bytes that are looked at afterwards.
#pragma once

#include <memory>
#include <string>

#include "runtime/thread_pool.h"
#include "support/generator/operand_data.h"

namespace retrograd::test {

class PassRunner {
 public:
  static std::unique_ptr<PassRunner> make(runtime::Device& device);
  // What a GPU gets, on any device.
  static std::unique_ptr<PassRunner> make_copying(runtime::Device& device);
  virtual ~PassRunner() = default;

  // Copies of all operands; valid until the next call.
  virtual Status place(const Operands& operands, const DataSketch& data) = 0;
  // Runs on poisoned results and copies the pass's result, gaps included, into `operands`. A failure, or a
  // byte that was written beside the result or in an operand that is read, is the Status. `pool` is for CPUs.
  virtual Status run(const engines::Candidate& candidate, const problem::Problem& problem,
                     const problem::Pass& pass, runtime::ThreadPool& pool, Operands& operands) = 0;
};

}  // namespace retrograd::test
