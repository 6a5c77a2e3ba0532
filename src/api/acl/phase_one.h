// SPDX-License-Identifier: Apache-2.0
// What every …GetWorkspaceSize does: reads its arguments, has them judged and planned, makes an executor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "aclnn/acl_meta.h"
#include "api/acl/objects.h"
#include "api/acl/tensor_rules.h"
#include "base/status.h"
#include "problem/request.h"

namespace retrograd::api::acl {

struct NamedPointer {
  const void* pointer;
  const char* name;
};
// In the order of the list.
Status none_null(std::initializer_list<NamedPointer> pointers);

struct NamedArray {
  const aclIntArray* array;
  const char* name;
  std::vector<int64_t>* values;
};
Result<std::vector<int64_t>> read_array(const aclIntArray* array, const char* name);
Status read_arrays(std::initializer_list<NamedArray> arrays);

// What its creator called the order of the tensor's axes.
problem::Format format_of(const aclTensor* tensor);

// What a request says of the products of a convolution: Winograd's algorithm aside, which not all can have.
problem::ConvMath math_of(int64_t mode);

class PhaseOne {
 public:
  static constexpr size_t kMostTensors = 7;  // of conv_tbc
  // `operation` lives for ever: the name of the operator, as messages and the log print it.
  explicit PhaseOne(const char* operation) : operation_(operation) { slots_.reserve(kMostTensors); }

  // The tensor as a view; its address is captured, and bound to `operand` when the plan runs. Called in the
  // order of the prototype, inputs first, since aclSetInputTensorAddr counts in it.
  Result<problem::TensorView> input(const aclTensor* tensor, const char* name,
                                    std::optional<problem::Operand> operand, const TensorRules& rules);
  // One that may be null: it keeps its number.
  Result<std::optional<problem::TensorView>> optional_input(const aclTensor* tensor, const char* name,
                                                            problem::Operand operand,
                                                            const TensorRules& rules);
  Result<problem::TensorView> output(const aclTensor* tensor, const char* name,
                                     std::optional<problem::Operand> operand, const TensorRules& rules);
  // An output that a mask may leave out: then it is never looked at, but keeps its number.
  Result<std::optional<problem::TensorView>> masked_output(bool wanted, const aclTensor* tensor,
                                                           const char* name, problem::Operand operand,
                                                           const TensorRules& rules);

  // Judges, plans, and writes both results; neither on failure.
  Status finish(problem::Request request, uint64_t* workspace_size, aclOpExecutor** executor);

 private:
  // A number for a tensor that is not there.
  std::optional<problem::TensorView> skip(const char* name);

  const char* operation_;
  std::vector<Slot> slots_;  // inputs, then outputs
  size_t input_count_ = 0;
};

}  // namespace retrograd::api::acl
