// SPDX-License-Identifier: Apache-2.0
// Memory of a device for the operands of a problem, holding small random numbers, or what is not finite.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "engines/engine.h"
#include "problem/problem.h"
#include "tools/measure/device_block.h"

namespace retrograd::tools {

enum class Values { kFinite, kOneInf, kAllNan };
// "finite", "one-inf", "all-nan".
std::string_view name_of(Values values);
std::optional<Values> values_from_name(std::string_view name);

class OperandMemory {
 public:
  // Only what the problem's passes touch.
  static Result<OperandMemory> make(const problem::Problem& problem, runtime::Device& device);
  const engines::Bindings& bindings() const { return bindings_; }

  bool holds(problem::Operand operand) const { return part(operand).block.get() != nullptr; }
  // Overwrites what an operand holds; nothing where it has no memory.
  Status put(problem::Operand operand, Values values);

 private:
  struct Part {
    DeviceBlock block;
    size_t bytes = 0;
    DType dtype = DType::kF32;
  };
  const Part& part(problem::Operand operand) const { return parts_[static_cast<size_t>(operand)]; }

  runtime::Device* device_ = nullptr;
  std::array<Part, problem::kOperandCount> parts_;
  engines::Bindings bindings_;
};

}  // namespace retrograd::tools
