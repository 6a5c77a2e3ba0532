// SPDX-License-Identifier: Apache-2.0
// Which number stands for which failure, and the messages about arguments.
#include "api/acl/guard.h"

#include <fmt/format.h>

#include "aclnn/opdev/op_errno.h"
#include "api/acl/objects.h"
#include "api/acl/runtime_state.h"
#include "base/per_process.h"

namespace retrograd::api::acl {

Outcome::Outcome(Status status) : code_(to_acl_error(status.code())), message_(status.message()) {}

aclError to_acl_error(Code code) {
  switch (code) {
    case Code::kOk:
      return ACL_SUCCESS;
    case Code::kNullArgument:
    case Code::kNullPointer:
      return ACL_ERROR_INVALID_PARAM;
    case Code::kInvalidArgument:
    case Code::kBadShape:
    case Code::kBadDtype:
    case Code::kBadStrides:
    case Code::kNullWorkspace:
    case Code::kShortWorkspace:
      return ACL_ERROR_RT_PARAM_INVALID;
    case Code::kBadHandle:
      return ACL_ERROR_RT_INVALID_HANDLE;
    case Code::kWrongDevice:
      return ACL_ERROR_RT_STREAM_CONTEXT;
    case Code::kNoDevice:
    case Code::kDeviceType:
      return ACL_ERROR_RT_CONTEXT_NULL;
    case Code::kOutOfMemory:
      return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case Code::kTimeout:
      return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    case Code::kInternal:
      break;
  }
  return ACL_ERROR_INTERNAL_ERROR;
}

aclnnStatus to_aclnn_status(Code code) {
  switch (code) {
    case Code::kOk:
      return ACLNN_SUCCESS;
    case Code::kNullArgument:
    case Code::kNullPointer:
    case Code::kNullWorkspace:
      return ACLNN_ERR_PARAM_NULLPTR;
    case Code::kInvalidArgument:
    case Code::kBadShape:
    case Code::kBadDtype:
    case Code::kBadStrides:
    case Code::kShortWorkspace:
      return ACLNN_ERR_PARAM_INVALID;
    case Code::kBadHandle:
      return ACLNN_ERR_INNER_NULLPTR;
    case Code::kWrongDevice:
    case Code::kNoDevice:
    case Code::kDeviceType:
    case Code::kOutOfMemory:
    case Code::kTimeout:
      return ACLNN_ERR_RUNTIME_ERROR;
    case Code::kInternal:
      break;
  }
  return ACLNN_ERR_INNER;
}

Status not_null(const void* pointer, const char* name) {
  if (pointer != nullptr) return Status::ok();
  return Status(Code::kNullArgument, "{} is null, expected an address", name);
}

Status null_handle(const char* name, const char* type) {
  return Status(Code::kNullArgument, "{} is null, expected an {}", name, type);
}

Status dead_handle(const char* name, const void* handle, const char* type) {
  return Status(Code::kBadHandle, "{} is {}, expected a live {}: it was destroyed, or was never one{}", name,
                handle, type, fork_note());
}

std::string not_initialised() {
  return fmt::format("aclInit has not been called, or aclFinalize has{}", fork_note());
}

Outcome check_initialised() {
  if (RuntimeState::instance().initialised()) return Status::ok();
  return Outcome(ACL_ERROR_UNINITIALIZE, not_initialised());
}

}  // namespace retrograd::api::acl
