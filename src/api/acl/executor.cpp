// SPDX-License-Identifier: Apache-2.0
// The calls on aclOpExecutor: kept for many runs, given other addresses, destroyed.

#include "aclnn/acl_meta.h"
#include "api/acl/guard.h"
#include "api/acl/objects.h"

using namespace retrograd;
using namespace retrograd::api::acl;

namespace {

enum class Group { kInputs, kOutputs, kAll };

Status set_address(aclOpExecutor* executor, Group group, size_t index, const aclTensor* tensor,
                   void* address) {
  RG_TRY(const auto found, find(executor, "executor"));
  RG_CHECK(find(tensor, "tensor").status());
  std::lock_guard lock(found->mutex);
  const size_t begin = group == Group::kOutputs ? found->input_count : 0;
  const size_t end = group == Group::kInputs ? found->input_count : found->slots.size();
  if (index >= end - begin)
    return Status(Code::kInvalidArgument, "index is {}, expected less than {}: {} has no more such tensors",
                  index, end - begin, found->operation);
  found->slots[begin + index].data = address;
  return Status::ok();
}

}  // namespace

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find(executor, "executor"));
    std::lock_guard lock(found->mutex);
    found->repeatable = true;
    return Status::ok();
  });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return guard_operator(__func__, [&] { return destroy(executor, "executor"); });
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return guard_operator(__func__, [&] { return set_address(executor, Group::kInputs, index, tensor, addr); });
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return guard_operator(__func__,
                        [&] { return set_address(executor, Group::kOutputs, index, tensor, addr); });
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return guard_operator(__func__, [&] { return set_address(executor, Group::kAll, index, tensor, addr); });
}
