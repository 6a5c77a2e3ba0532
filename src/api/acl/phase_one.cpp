// SPDX-License-Identifier: Apache-2.0
// Phase one, as far as the operators share it.
#include "api/acl/phase_one.h"

#include <fmt/format.h>

#include <utility>

#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/settings.h"
#include "plan/plan.h"
#include "problem/problem.h"

namespace retrograd::api::acl {

Status none_null(std::initializer_list<NamedPointer> pointers) {
  for (const auto& [pointer, name] : pointers) RG_CHECK(not_null(pointer, name));
  return Status::ok();
}

Result<std::vector<int64_t>> read_array(const aclIntArray* array, const char* name) {
  RG_TRY(const auto found, find(array, name));
  return *found;
}

Status read_arrays(std::initializer_list<NamedArray> arrays) {
  for (const NamedArray& argument : arrays) {
    RG_TRY(*argument.values, read_array(argument.array, argument.name));
  }
  return Status::ok();
}

problem::Format format_of(const aclTensor* tensor) {
  const auto found = find(tensor, "");
  return found.is_ok() ? to_format(found.value()->format) : problem::Format::kUnsaid;
}

problem::ConvMath math_of(int64_t mode) {
  return {.mode = mode,
          .hf32_mantissa_bits = settings().hf32_mantissa_bits,
          .product = RuntimeState::instance().product()};
}

Result<problem::TensorView> PhaseOne::output(const aclTensor* tensor, const char* name,
                                             std::optional<problem::Operand> operand,
                                             const TensorRules& rules) {
  RG_TRY(const auto found, find(tensor, name));
  RG_TRY(const DType dtype, check_tensor(*found, name, rules));
  const bool has_elements = problem::element_count(found->shape).value_or(0) > 0;
  const auto offset_bytes = checked_mul(found->offset, static_cast<int64_t>(size_of(dtype)));
  if (!offset_bytes)
    return Status(Code::kBadStrides, "{}.offset is {}: its bytes do not fit in 64 bits", name, found->offset);
  slots_.push_back({name, operand, found->data, *offset_bytes, has_elements});
  return problem::TensorView{dtype, found->shape, found->strides, found->offset, found->storage_shape};
}

Result<problem::TensorView> PhaseOne::input(const aclTensor* tensor, const char* name,
                                            std::optional<problem::Operand> operand,
                                            const TensorRules& rules) {
  ++input_count_;
  return output(tensor, name, operand, rules);
}

std::optional<problem::TensorView> PhaseOne::skip(const char* name) {
  slots_.push_back({name, std::nullopt, nullptr, 0, false});
  return std::nullopt;
}

Result<std::optional<problem::TensorView>> PhaseOne::optional_input(const aclTensor* tensor, const char* name,
                                                                    problem::Operand operand,
                                                                    const TensorRules& rules) {
  if (tensor == nullptr) {
    ++input_count_;
    return skip(name);
  }
  RG_TRY(auto view, input(tensor, name, operand, rules));
  return std::optional(std::move(view));
}

Result<std::optional<problem::TensorView>> PhaseOne::masked_output(bool wanted, const aclTensor* tensor,
                                                                   const char* name, problem::Operand operand,
                                                                   const TensorRules& rules) {
  if (!wanted) return skip(name);
  RG_TRY(auto view, output(tensor, name, operand, rules));
  return std::optional(std::move(view));
}

Status PhaseOne::finish(problem::Request request, uint64_t* workspace_size, aclOpExecutor** executor) {
  const auto problem = problem::judge(std::move(request));
  if (!problem.is_ok()) return problem.status();
  for (const std::string& warning : problem.value().warnings)
    log::warn_once(fmt::format("{}: {}", operation_, warning));
  RG_TRY(runtime::Device* const device, RuntimeState::instance().operator_device());
  RG_TRY(auto plan, plan::make_plan(problem.value(), *device, operation_));

  auto made = std::make_shared<Executor>();
  made->operation = operation_;
  made->input_count = input_count_;
  made->slots = std::move(slots_);
  made->plan = std::move(plan);
  const size_t bytes = made->plan->workspace_bytes();
  *executor = make_handle<aclOpExecutor>(std::move(made));
  *workspace_size = bytes;
  return Status::ok();
}

}  // namespace retrograd::api::acl
