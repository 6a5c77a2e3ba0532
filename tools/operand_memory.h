// SPDX-License-Identifier: Apache-2.0
// Memory for the operands of a problem, holding small random numbers.
#pragma once

#include <array>

#include "base/status.h"
#include "engines/engine.h"
#include "problem/problem.h"
#include "tools/aligned_block.h"

namespace retrograd::tools {

class OperandMemory {
 public:
  // Only what the problem's passes touch.
  static Result<OperandMemory> make(const problem::Problem& problem);
  const engines::Bindings& bindings() const { return bindings_; }

 private:
  std::array<AlignedBlock, problem::kOperandCount> blocks_;
  engines::Bindings bindings_;
};

}  // namespace retrograd::tools
