// SPDX-License-Identifier: Apache-2.0
#include "kernel_parts.h"

#include <torch/csrc/stable/c/shim.h>

#include <stdexcept>
#include <string>

#include "kernels.h"
#include "process_state.h"

namespace retrograd_torch {
namespace {

using torch::stable::Tensor;

thread_local std::string original_error;

// A text of the library's, cut where a line of a few names would not be.
template <class Call>
std::string text_of(const Call& call) {
  char text[1024];
  size_t length = 0;
  return call(text, sizeof text, &length) == RETROGRAD_OK ? text : "";
}

bool has(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

// Whether BF16 is multiplied as FP32 by our dense engines where oneDNN has instructions for it.
bool widens(retrogradPlan_t plan, const Facts& facts) {
  if (facts.dtype != RETROGRAD_BF16 || facts.device != RETROGRAD_CPU) return false;
  static const bool has_pairs = [] {
    const std::string cpu = text_of([](char* text, size_t capacity, size_t* length) {
      return retrogradDescribeDevice({RETROGRAD_CPU, 0}, text, capacity, length);
    });
    return has(cpu, "bf16 pairs") || has(cpu, "bf16 tiles");
  }();
  return has_pairs && has(text_of([&](char* text, size_t capacity, size_t* length) {
                            return retrogradDescribePlan(plan, text, capacity, length);
                          }),
                          ":cpu.dense_");
}

}  // namespace

void note_original_error(std::string text) { original_error = std::move(text); }

void call_original(Op op, StableIValue* stack) {
  static const std::string prefix = "retrograd::original_";
  const std::string name = prefix + name_of(op);
  original_error.clear();
  if (torch_call_dispatcher(name.c_str(), "", stack, TORCH_ABI_VERSION) == 0) return;
  throw std::runtime_error(original_error.empty() ? std::string("aten::") + name_of(op) + " failed"
                                                  : original_error);
}

std::shared_ptr<const Entry> entry_of(const Key& key, const std::function<void(Entry&)>& fill) {
  PlanCache& plans = process_state().plans;
  if (auto found = plans.find(key)) return found;
  auto made = std::make_shared<Entry>();
  fill(*made);
  plans.insert(key, made);
  return made;
}

void plan_into(Entry& entry, const retrogradProblem_t& problem, Facts facts) {
  const retrogradStatus_t status = retrogradCreatePlan(&entry.plan, &problem);
  if (status == RETROGRAD_OUT_OF_MEMORY || status == RETROGRAD_INTERNAL_ERROR)  // no property of the problem
    throw std::runtime_error(std::string("retrograd: ") + retrogradGetLastError());
  if (status != RETROGRAD_OK) {
    entry.plan = nullptr;
    entry.refusal = retrogradGetLastError();
    return;
  }
  if (retrogradGetWorkspaceSize(entry.plan, &entry.workspace_size) != RETROGRAD_OK ||
      retrogradGetPlanCost(entry.plan, &facts.our_microseconds) != RETROGRAD_OK)
    throw std::runtime_error(std::string("retrograd: ") + retrogradGetLastError());
  facts.widened = widens(entry.plan, facts);
  entry.stock_faster = stock_is_faster(facts);
}

retrogradMath_t math_of(const Operand& operand, Products products) {
  const bool asks = operand.device().type == RETROGRAD_CUDA && operand.dtype() == RETROGRAD_F32;
  return asks && tf32_is_allowed(products) ? RETROGRAD_MATH_REDUCED : RETROGRAD_MATH_KEEP;
}

std::optional<Results> compute(Op op, const Entry& entry, const Operand& grad_output, const Operand* input,
                               const Operand* weight) {
  const retrogradDevice_t device = grad_output.device();
  const Outcome outcome = outcome_of(entry);
  if (outcome == Outcome::kRefused) {
    count_refusal(op, device.type, entry.refusal);
    return std::nullopt;
  }
  if (outcome != Outcome::kTaken) {
    count(op, device.type, outcome);
    return std::nullopt;
  }
  const bool on_gpu = device.type == RETROGRAD_CUDA;
  Tensor gpu_workspace = allocate_bytes(on_gpu ? entry.workspace_size : 0, device);
  if (on_gpu && entry.workspace_size > 0 && !gpu_workspace.defined()) {  // stock may need less
    count(op, device.type, Outcome::kNoWorkspace);
    return std::nullopt;
  }
  count(op, device.type, Outcome::kTaken);
  const int32_t dtype = grad_output.torch_dtype();
  Results results{allocate(entry.grad_input, dtype, device), allocate(entry.grad_weight, dtype, device),
                  allocate(entry.grad_bias, dtype, device)};
  const auto writable = [](const Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
  };
  const retrogradAddresses_t addresses{grad_output.address(),
                                       input == nullptr ? nullptr : input->address(),
                                       weight == nullptr ? nullptr : weight->address(),
                                       writable(results.grad_input),
                                       writable(results.grad_weight),
                                       writable(results.grad_bias),
                                       nullptr,
                                       nullptr};
  retrogradStatus_t status;
  if (on_gpu) {
    status = retrogradExecute(entry.plan, &addresses, writable(gpu_workspace), entry.workspace_size,
                              current_stream(device.index));
  } else {
    const Workspace workspace(process_state().workspaces, entry.workspace_size);
    status = retrogradExecute(entry.plan, &addresses, workspace.address(), workspace.size(), nullptr);
  }
  if (status != RETROGRAD_OK) throw std::runtime_error(std::string("retrograd: ") + retrogradGetLastError());
  return results;
}

}  // namespace retrograd_torch
