// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on memory. A refused copy copies nothing.
#include "runtime/memory.h"

#include "acl/acl_rt.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using runtime::AllocationTable;
using runtime::MemoryOwner;
using runtime::MemorySpace;

namespace {

Outcome allocate(void** address, const char* name, size_t bytes, MemorySpace space) {
  RG_CHECK(not_null(address, name));
  if (bytes == 0) return Outcome(ACL_ERROR_INVALID_PARAM, "size is 0, expected at least 1");
  RG_TRY(const auto context, RuntimeState::instance().current_context());
  RG_TRY(*address, AllocationTable::instance().allocate(context->device(), bytes, space, MemoryOwner::kAcl));
  return Status::ok();
}

Outcome release(void* address, const char* name, MemorySpace space) {
  RG_CHECK(not_null(address, name));
  return AllocationTable::instance().release(address, space, MemoryOwner::kAcl, name);
}

Status check_block(const void* address, const char* name, size_t count) {
  if (count == 0) return Status::ok();
  RG_CHECK(not_null(address, name));
  return AllocationTable::instance().check_range(address, count, name);
}

// Copies and fills answer 100000 to whatever they refuse about their arguments.
Outcome check_fill(const void* address, const char* name, size_t limit, const char* limit_name,
                   size_t count) {
  if (count > limit)
    return Outcome(ACL_ERROR_INVALID_PARAM, "count is {}, expected at most {} = {}", count, limit_name,
                   limit);
  const Status block = check_block(address, name, count);
  return block.is_ok() ? Outcome(block) : Outcome(ACL_ERROR_INVALID_PARAM, block.message());
}

Outcome check_copy(const void* dst, size_t dest_max, const void* src, size_t count, aclrtMemcpyKind kind) {
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT)
    return Outcome(ACL_ERROR_INVALID_PARAM, "kind is {}, expected an aclrtMemcpyKind, 0 to 4",
                   static_cast<int>(kind));
  Outcome destination = check_fill(dst, "dst", dest_max, "destMax", count);
  if (destination.code() != ACL_SUCCESS) return destination;
  const Status block = check_block(src, "src", count);
  return block.is_ok() ? Outcome(block) : Outcome(ACL_ERROR_INVALID_PARAM, block.message());
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (policy < ACL_MEM_MALLOC_HUGE_FIRST || policy > ACL_MEM_MALLOC_NORMAL_ONLY_P2P)
      return Status(Code::kInvalidArgument, "policy is {}, expected an aclrtMemMallocPolicy, 0 to 5",
                    static_cast<int>(policy));
    return allocate(devPtr, "devPtr", size, MemorySpace::kDevice);
  });
}

aclError aclrtFree(void* devPtr) {
  return guard_runtime(__func__, [&] { return release(devPtr, "devPtr", MemorySpace::kDevice); });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return guard_runtime(__func__, [&] { return allocate(hostPtr, "hostPtr", size, MemorySpace::kHost); });
}

aclError aclrtFreeHost(void* hostPtr) {
  return guard_runtime(__func__, [&] { return release(hostPtr, "hostPtr", MemorySpace::kHost); });
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (auto bad = check_copy(dst, destMax, src, count, kind); bad.code() != ACL_SUCCESS) return bad;
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    return count == 0 ? Status::ok() : context->device().copy(dst, src, count);
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (auto bad = check_copy(dst, destMax, src, count, kind); bad.code() != ACL_SUCCESS) return bad;
    RG_TRY(const auto found, RuntimeState::instance().stream(stream));
    return count == 0 ? Status::ok() : found->copy(dst, src, count);
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (auto bad = check_fill(devPtr, "devPtr", maxCount, "maxCount", count); bad.code() != ACL_SUCCESS)
      return bad;
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    return count == 0 ? Status::ok() : context->device().fill(devPtr, value, count);
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (auto bad = check_fill(devPtr, "devPtr", maxCount, "maxCount", count); bad.code() != ACL_SUCCESS)
      return bad;
    RG_TRY(const auto found, RuntimeState::instance().stream(stream));
    return count == 0 ? Status::ok() : found->fill(devPtr, value, count);
  });
}
