// SPDX-License-Identifier: Apache-2.0
// Running an executor: addresses from its slots, everything else from its plan.
#include "api/acl/execute.h"

#include "api/acl/guard.h"
#include "api/acl/objects.h"
#include "api/acl/runtime_state.h"
#include "plan/plan.h"
#include "runtime/memory.h"

namespace retrograd::api::acl {
namespace {

Status check_operation(const Executor& executor, const aclOpExecutor* handle, const char* operation) {
  if (executor.consumed) return dead_handle("executor", handle, "aclOpExecutor");
  if (executor.operation == operation) return Status::ok();
  return Status(Code::kBadHandle, "executor is {}, which {}GetWorkspaceSize made, expected one of {}",
                static_cast<const void*>(handle), executor.operation, operation);
}

// The plan judges the bytes an operand spans around its address. Here is known what it cannot see: an offset
// that has led the address out of the block that the caller named.
Status check_offset(const Slot& slot, uintptr_t address) {
  if (slot.offset_bytes == 0 || !slot.has_elements) return Status::ok();
  const auto block = runtime::AllocationTable::instance().find(slot.data);
  if (!block || address - reinterpret_cast<uintptr_t>(block->base) < block->bytes) return Status::ok();
  return Status(Code::kBadStrides, "{}.offset is {} bytes from {}, which leaves its block of {} bytes",
                slot.name, slot.offset_bytes, slot.data, block->bytes);
}

Result<plan::Bindings> bind(const Executor& executor) {
  plan::Bindings bindings;
  for (const Slot& slot : executor.slots) {
    if (!slot.operand || slot.data == nullptr) continue;
    // As a number: the offset may be negative, and pointer arithmetic outside a block is undefined.
    const auto address = reinterpret_cast<uintptr_t>(slot.data) + static_cast<uintptr_t>(slot.offset_bytes);
    RG_CHECK(check_offset(slot, address));
    bindings.set(*slot.operand, reinterpret_cast<const void*>(address));
  }
  return bindings;
}

}  // namespace

aclnnStatus execute(const char* operation, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                    aclrtStream stream) noexcept {
  return guard_operator(operation, [&]() -> Status {
    // An aclFinalize that comes meanwhile waits until the work is on its stream, and for the stream.
    const InFlight::Call call(calls_in_flight());
    RG_TRY(const auto found, find(executor, "executor"));
    std::lock_guard lock(found->mutex);
    RG_CHECK(check_operation(*found, executor, operation));
    RG_TRY(const auto queue, RuntimeState::instance().operator_stream(stream));
    const plan::Plan& plan = *found->plan;
    RG_TRY(const plan::Bindings bindings, bind(*found));
    // A masked-in gradient without an address is an error here. The workspace comes first, and execute()
    // judges it.
    const bool workspace_fits = workspace != nullptr && workspace_size >= plan.workspace_bytes();
    if (workspace_fits || plan.workspace_bytes() == 0) RG_CHECK(plan.require_results(bindings));
    RG_CHECK(plan::Plan::execute(found->plan, bindings, workspace, workspace_size, *queue));
    if (!found->repeatable) {
      found->consumed = true;
      table<aclOpExecutor>().remove(executor);
    }
    return Status::ok();
  });
}

}  // namespace retrograd::api::acl
