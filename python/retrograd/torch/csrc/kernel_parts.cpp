// SPDX-License-Identifier: Apache-2.0
#include "kernel_parts.h"

#include <torch/csrc/stable/c/shim.h>

#include <stdexcept>
#include <string>

#include "kernels.h"
#include "process_state.h"

namespace retrograd_torch {
namespace {

thread_local std::string original_error;

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
  entry.stock_faster = stock_is_faster(facts);
}

void execute(const Entry& entry, const retrogradAddresses_t& addresses) {
  Workspace workspace(process_state().workspaces, entry.workspace_size);
  if (retrogradExecute(entry.plan, &addresses, workspace.address(), workspace.size(), nullptr) !=
      RETROGRAD_OK)
    throw std::runtime_error(std::string("retrograd: ") + retrogradGetLastError());
}

}  // namespace retrograd_torch
